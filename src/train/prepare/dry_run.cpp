// Opens, reads and checks the inputs of runs that other commands start.
#include "train/prepare/dry_run.h"

#include <set>

#include "core/files/files.h"
#include "engine/engine.h"
#include "engine/model_outputs.h"
#include "tasks/baseline.h"
#include "train/layout/stages.h"
#include "train/resume.h"
#include "train/run/run_setup.h"
#include "train/signals.h"
#include "weights/weights.h"

namespace finetune {
namespace {

void check_stop() {
  const StopRequest request = signals_of_runs().request();
  if (request == StopRequest::none) return;
  throw Error(exit_code_of(request), "stopped by a signal while reading data; nothing is written");
}

// Model and data of a run, open and not read.
struct OpenInputs {
  OpenInputs(const TrainOptions& options, SharedInputs& inputs)
      : model(open_model(options.model, !options.reinit)),
        source(open_weights_of(model)),
        data(inputs.open(options, check_stop)) {}

  std::shared_ptr<Task> read(const TrainOptions& options, SharedInputs& inputs) const {
    return inputs.read(options, data, model, *source, {});
  }
  std::shared_ptr<Fingerprint> sum_data(SharedInputs& inputs) const {
    return inputs.sum(data.all(), ExitCode::data);
  }
  std::shared_ptr<Fingerprint> sum_model(SharedInputs& inputs) const {
    const std::vector<fs::path> files = model_files(model, *source);
    return inputs.sum({files.begin(), files.end()}, ExitCode::model);
  }

  ModelFiles model;
  std::unique_ptr<WeightSource> source;
  DataFiles data;
};

// Checks what can be checked without reading the data.
void check_openable(const TrainOptions& options, SharedInputs& inputs) {
  require_no_pipe(options.model);
  const OpenInputs there(options, inputs);
  lowest_trained_layer(options, there.model.config);
  const int64_t positions = there.model.config.max_length();
  if (options.max_length.value_or(0) > positions) {
    throw usage_error("--max-length ", *options.max_length, " is beyond the model's ", positions,
                      " positions");
  }
}

std::shared_ptr<Task> read_data(const TrainOptions& options, SharedInputs& inputs, bool sums) {
  const OpenInputs open(options, inputs);
  if (sums) {
    open.sum_data(inputs);
    open.sum_model(inputs);
  }
  std::shared_ptr<Task> task = open.read(options, inputs);
  if (sums) inputs.wait_for_sums();
  return task;
}

}  // namespace

void read_inputs(const TrainOptions& options, SharedInputs& inputs) {
  const std::shared_ptr<Task> task = read_data(options, inputs, true);
  // Computed once here, and inherited by forked processes.
  if (task->eval_set()) task->baselines();
}

InputSums input_sums(const TrainOptions& options, SharedInputs& inputs) {
  const OpenInputs open(options, inputs);
  const auto data = open.sum_data(inputs);
  return {data->result(), open.sum_model(inputs)->result()};
}

std::optional<RecipeFacts> facts_with_evaluation(const TrainOptions& options,
                                                 SharedInputs& inputs) {
  const std::shared_ptr<Task> task = read_data(options, inputs, false);
  if (!task->eval_set()) return std::nullopt;
  return recipe_facts(options, *task, open_model(options.model, !options.reinit).config);
}

void check_options_of(const std::vector<NamedRun>& runs, int processes, SharedInputs& inputs) {
  const TrainOptions& first = runs.front().options;
  require_no_pipe(first.model);
  const OpenInputs open(first, inputs);
  const auto task = open.read(first, inputs);
  const std::string key = SharedInputs::key(first);
  std::set<std::string> keys{key};
  for (const auto& [options, name] : runs) {
    const std::string own = SharedInputs::key(options);
    try {
      if (keys.insert(own).second) check_openable(options, inputs);
      if (own != key) continue;
      require_options_of(task->kind(), options);
      lowest_trained_layer(options, open.model.config);
      checked_best_metric(options, *task);
      read_assertions(
          options, metrics_of_run(options, layout_of(options, processes), *task, open.model.config,
                                  may_be_on_gpu(wanted_device(options))));
    } catch (const Error& error) {
      throw Error(error.code(), concat(name, ": ", error.what()));
    }
  }
}

}  // namespace finetune
