// A training run's layout: processes and layers, as formulas, for the log and as metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "train/plan/layout_forecast.h"
#include "train/training_run.h"

namespace finetune {

// The layout that the options ask for. Error(usage): it does not divide the number of processes.
Layout layout_of(const TrainOptions& options, int processes);
// The communicators along the axes of that layout. Collective; throws as layout_of.
std::unique_ptr<LayoutGroups> make_groups(Communicator& world, const TrainOptions& options);

// Derives options that were not given from the layout: one virtual shard per replica, one tensor
// shard per tensor rank and, with several stages, about four micro-batches per stage.
void take_layout_defaults(TrainOptions& options, const Layout& layout);

// Cuts the model's layers into stages. Error(usage) naming the numbers if they do not fit.
StageSplit stages_of(const TrainOptions& options, const EncoderConfig& config, HeadKind head);

// The functions from here on need resolved options.

// Sets stages and sizes of micro-batches in `settings`, from its options, the model's shape and the
// training samples. Error(usage) as stages_of.
void plan_micro_batches(Settings& settings, const SampleView& training);
// The most micro-batches that a virtual shard can have, whatever its samples' lengths.
int64_t most_micro_batches(const TrainOptions& options, const SampleView& samples);
PipelineShape pipeline_shape(const TrainOptions& options, const EncoderConfig& config,
                             const StageSplit& split, int64_t micro_batches);
// Activation slots that a stage needs if its replica has `shards` virtual shards, each with the
// shape's micro-batches.
int slots_of_stage(const PipelineShape& of_a_shard, int64_t shards, int stage);

// The layout's numbers, for formulas and tables.
LayoutRun layout_run(const Machine& machine, const Settings& settings);
// The same without data: with a batch that keeps all processes busy. Error(usage): the layout does
// not fit the processes or the model.
LayoutRun layout_run(const Communicator& comm, const EncoderConfig& config,
                     const TrainOptions& options);
std::vector<std::string> host_names(const Communicator& comm);
// The share of a step that stages spend waiting, computed from the layers' arithmetic.
double forecast_bubble(const LayoutRun& run);
// Writes the run's layout.json. If each replica is one process, removes the file, which a part of
// the run before --resume may have written.
void write_layout(const std::filesystem::path& path, const Machine& machine,
                  const Settings& settings);

// The bytes that all processes have sent in steps so far, by axis; step_bytes() forecasts them.
// Collective.
StepBytes bytes_of_steps(Communicator& world, const Learner& learner);
// Adds the forecast pipeline_bubble, and tp_bytes, pp_bytes and dp_bytes: the bytes that the
// processes along an axis sent to each other, on average over the last `steps` steps. Axes with one
// process and bytes from device to device are left out. Collective.
void add_layout_metrics(const Machine& machine, const Settings& settings, const Learner& learner,
                        int64_t steps, Metrics& metrics);

}  // namespace finetune
