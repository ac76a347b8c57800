// A training run's layout: who is which replica and stage, and what a stage does in a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/plan/layout_forecast.h"
#include "train/session.h"

namespace finetune {

// Collective: communicators along the axes. Error(usage) where the processes cannot have the
// layout.
void make_groups(Session& session);

// Of so many processes. Error(usage), naming the numbers.
Layout layout_of(const TrainOptions& options, int processes);

// The model's layers cut into stages, the same on all processes. Error(usage) naming the numbers.
StageSplit stages_of(const TrainOptions& options, const BertConfig& config, HeadKind head);
// Of resolved options.
void cut_into_stages(Session& session);
// Micro-batches of one virtual shard at most, whatever the lengths of its samples. Of resolved
// options, as what follows.
int64_t most_micro_batches(const TrainOptions& options, const SampleView& samples);
PipelineShape pipeline_shape(const TrainOptions& options, const BertConfig& config,
                             const StageSplit& split, int64_t micro_batches);
// Slots of a stage whose replica has so many virtual shards, each with the shape's micro-batches.
int slots_of_stage(const PipelineShape& of_a_shard, int64_t shards, int stage);
ModelPart own_part(const Session& session);
// Collective over the tensor ranks: their sum, for the largest micro-batches of training and of
// `evaluation` (zeros: none); through the host without `peers`. Null where one process has all
// tensor shards.
std::unique_ptr<CountedTensorSum> make_tensor_sum(Session& session, Backend& backend,
                                                  const LayoutPeers* peers, BatchSize evaluation);

// Micro-batches of which this process keeps activations at once.
int64_t activation_slots(const Session& session);
// Collective, with the engine there: buffers for the largest micro-batches of training and of
// `evaluation` (zeros: none), and the links between stages for both.
void reserve_buffers(Session& session, BatchSize evaluation);
// What this stage does in a step.
StagePlan stage_plan(const Session& session);

// What of the result follows from the layout at the start: a virtual shard a replica, a tensor
// shard a tensor rank, and with several stages, where nothing says how to cut, about four
// micro-batches a stage.
void take_layout_defaults(TrainOptions& options, const Layout& layout);

// Of a run whose replicas have several processes, by formulas: what layout_table.h tells of it.
LayoutRun layout_run(const Session& session);
// The same of these processes with a model's shape alone, and a batch that keeps all busy: who
// would be where. Error(usage) for options that the processes or the model cannot have.
LayoutRun layout_run(const Communicator& comm, const BertConfig& config,
                     const TrainOptions& options);
std::vector<std::string> host_names(const Communicator& comm);
// Share of a step in which stages wait, from the layers' arithmetic.
double forecast_bubble(const LayoutRun& run);
void write_layout(const Session& session);  // the run's layout.json; none without stages
// Of all processes, in this session's steps: what step_bytes() forecasts (layout_forecast.h).
// Collective.
StepBytes bytes_of_steps(Session& session);
// Collective: pipeline_bubble, by forecast, and tp_bytes, pp_bytes and dp_bytes, what the processes
// of each axis have handed to each other in each of the last `steps`, on average. Nothing of an
// axis along which there is one process, nor of what goes from device to device.
void add_layout_metrics(Session& session, int64_t steps, Metrics& metrics);

}  // namespace finetune
