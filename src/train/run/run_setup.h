// Turns a training run's options into the objects that the run works with, and checks them.
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

// The data's files. They can be read more than once: pipes are copied (data/input_file.h).
struct DataFiles {
  std::vector<InputFile> train, eval;

  std::vector<InputFile> all() const;  // training files first
};
// Describes data that is both training and evaluation data: a file given twice, or two files with
// the same bytes. One sentence each, for the log.
std::vector<std::string> repeated_data(const DataFiles& data);
// Error(data) if a file is missing. `check_stop` is called while a pipe has no data yet.
DataFiles open_data(const TrainOptions& options, const std::function<void()>& check_stop = nullptr);

// Reads and tokenizes the data. `label_order`: with --resume, the run's labels by id. Error(usage)
// for options of another task, Error(model) if the model has a head for other labels.
std::unique_ptr<Task> read_task(const TrainOptions& options, const DataFiles& data,
                                const ModelFiles& model, const WeightSource& source,
                                std::vector<std::string> label_order = {});

// All names in the run's metrics.json. `config`: the model's. `on_gpu`: the run uses a GPU.
std::vector<std::string> metrics_of_run(const TrainOptions& options, const Layout& layout,
                                        const Task& task, const EncoderConfig& config, bool on_gpu);
// --best-metric or the task's default; empty without evaluation data. Error(usage) if unknown.
std::string checked_best_metric(const TrainOptions& options, const Task& task);

// --freeze: returns the lowest trained layer (0: all are trained). Error(usage).
int lowest_trained_layer(const TrainOptions& options, const EncoderConfig& config);
Schedule make_schedule(const TrainOptions& options, int64_t samples);
// Takes resolved options: --virtual-shards and --micro-batch-tokens must have values.
StepOptions step_options(const TrainOptions& options, const EncoderConfig& config);
// The whole model, cut into the run's tensor shards.
ModelPart whole_model(const TrainOptions& options, const EncoderConfig& config);
std::string describe_micro_batches(const TrainOptions& options);  // for the log

// Error(model) if `source` lacks weights that load_initial() needs. Reads no values. Call this
// before allocating an arena of the table.
void check_initial(const TrainOptions& options, const EncoderConfig& config,
                   const ParameterTable& table, const WeightSource& source,
                   std::span<const int32_t> head_rows);
// Loads the weights that the run begins with into an arena of `held`, the table of the whole model
// or of a part (pretrained.h). `head_rows`: the task's.
PretrainedReport load_initial(const TrainOptions& options, const EncoderConfig& config,
                              const ParameterTable& table, const ParameterTable& held,
                              const WeightSource& source, std::span<const int32_t> head_rows,
                              float* arena);

// Error(data) if a data file is a pipe: with several hosts, a process on each reads the data.
void require_no_pipes(const TrainOptions& options, int hosts);
// Error(usage) if --overwrite would remove the run's data, model or baselines.
void check_own_inputs_survive(const TrainOptions& options, const ModelFiles& model,
                              const WeightSource& source);

// The files that the run reads.
std::vector<std::filesystem::path> data_files(const TrainOptions& options);
std::vector<std::filesystem::path> model_files(const ModelFiles& model, const WeightSource& source);
// Error(model) if `file` is a pipe: the weights are read twice, for training and for their SHA-256.
void require_no_pipe(const std::filesystem::path& file);

}  // namespace finetune
