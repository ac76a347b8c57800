// A training run's options made into what the run works with, each checked on the way.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/input_file.h"
#include "distributed/layout/layout.h"
#include "engine/engine.h"
#include "engine/pretrained.h"
#include "tasks/task.h"
#include "train/options/options.h"
#include "train/run/run_directory.h"
#include "train/schedule.h"
#include "train/training_step.h"
#include "weights/weights.h"

namespace finetune {

OutputMode output_mode(const TrainOptions& options);

// The data's files, to be read more than once: pipes are copied (data/input_file.h).
struct DataFiles {
  std::vector<InputFile> train, eval;

  std::vector<InputFile> all() const;  // those of training first
};
// What is training and evaluation data at once: a file that is both, or two with the same bytes. A
// sentence each, for the log.
std::vector<std::string> repeated_data(const DataFiles& data);
// Error(data) for a file that is missing. `check_stop` is called while a pipe brings nothing.
DataFiles open_data(const TrainOptions& options, const std::function<void()>& check_stop = nullptr);

// Reads and tokenizes the data. `label_order`: of a run that goes on, its labels by id.
// Error(usage) for options of another task, Error(model) if the model has a head for other labels.
std::unique_ptr<Task> read_task(const TrainOptions& options, const DataFiles& data,
                                const ModelFiles& model, const WeightSource& source,
                                std::vector<std::string> label_order = {});

// All names in the run's metrics.json. `config`: the model's; `on_gpu`: the run computes there.
std::vector<std::string> metrics_of_run(const TrainOptions& options, const Layout& layout,
                                        const Task& task, const EncoderConfig& config, bool on_gpu);
// --best-metric, or the task's; empty without evaluation data. Error(usage) for an unknown one.
std::string checked_best_metric(const TrainOptions& options, const Task& task);

// --freeze: layers below are frozen (0: none is). Error(usage).
int lowest_trained_layer(const TrainOptions& options, const EncoderConfig& config);
Schedule make_schedule(const TrainOptions& options, int64_t samples);
// Of resolved options: --virtual-shards and --micro-batch-tokens have values.
StepOptions step_options(const TrainOptions& options, const EncoderConfig& config);
// All of the model, cut into the run's tensor shards.
ModelPart whole_model(const TrainOptions& options, const EncoderConfig& config);
std::string describe_micro_batches(const TrainOptions& options);  // for the log

// Error(model) if they cannot be had from there, whatever their values: to be asked before an arena
// of the table is allocated.
void check_initial(const TrainOptions& options, const EncoderConfig& config,
                   const ParameterTable& table, const WeightSource& source,
                   std::span<const int32_t> head_rows);
// The weights that the run begins with, into an arena of `held`, the whole model's table or that of
// a part (pretrained.h). `head_rows`: the task's.
PretrainedReport load_initial(const TrainOptions& options, const EncoderConfig& config,
                              const ParameterTable& table, const ParameterTable& held,
                              const WeightSource& source, std::span<const int32_t> head_rows,
                              float* arena);

// Error(data) for a pipe among the data, which a process of each of the hosts reads.
void require_no_pipes(const TrainOptions& options, int hosts);
// Error(usage) where --overwrite would remove the run's data, model or baselines.
void check_own_inputs_survive(const TrainOptions& options, const ModelFiles& model,
                              const WeightSource& source);

// Files that the run reads.
std::vector<std::filesystem::path> data_files(const TrainOptions& options);
std::vector<std::filesystem::path> model_files(const ModelFiles& model, const WeightSource& source);
// Error(model) if `file` is a pipe: the weights are read for training and for their sum.
void require_no_pipe(const std::filesystem::path& file);

}  // namespace finetune
