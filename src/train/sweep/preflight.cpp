// Reads what runs share and checks their options against it.
#include "train/sweep/preflight.h"

#include "comm/agreement.h"
#include "core/files/files.h"
#include "core/log.h"
#include "engine/engine.h"
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

void read_and_check(const Grid& grid, const std::vector<size_t>& runs, int processes,
                    SharedInputs& inputs) {
  const TrainOptions& first = grid.runs[runs.front()].options;
  require_no_pipe(first.model);
  const ModelFiles model = open_model(first.model);
  const auto source = open_weights(model.directory.weights, model.config.architecture->base_prefix);
  const DataFiles data = inputs.open(first, check_stop);
  const auto task = inputs.read(first, data, model, *source, {});
  const std::string key = SharedInputs::key(first);
  for (size_t place : runs) {
    const SweepRun& run = grid.runs[place];
    if (SharedInputs::key(run.options) != key) continue;
    try {
      require_options_of(task->kind(), run.options);
      lowest_trained_layer(run.options, model.config);
      checked_best_metric(run.options, *task);
      read_assertions(run.options, metrics_of_run(layout_of(run.options, processes), *task));
    } catch (const Error& error) {
      throw Error(error.code(), concat(grid.file, ": run ", run.name, ": ", error.what()));
    }
  }
}

}  // namespace

namespace {

std::shared_ptr<Task> read_data(const TrainOptions& options, SharedInputs& inputs, bool sums) {
  const ModelFiles model = open_model(options.model);
  const auto source = open_weights(model.directory.weights, model.config.architecture->base_prefix);
  const DataFiles data = inputs.open(options, check_stop);
  if (sums) {
    const std::vector<fs::path> files = model_files(model, *source);
    inputs.sum(data.all(), ExitCode::data);
    inputs.sum({files.begin(), files.end()}, ExitCode::model);
  }
  std::shared_ptr<Task> task = inputs.read(options, data, model, *source, {});
  if (sums) inputs.wait_for_sums();
  return task;
}

}  // namespace

void read_inputs(const TrainOptions& options, SharedInputs& inputs) {
  const std::shared_ptr<Task> task = read_data(options, inputs, true);
  // Once, for all processes that find it in their memory.
  if (task->eval_set()) task->baselines();
}

int64_t count_samples(const TrainOptions& options, SharedInputs& inputs) {
  const std::shared_ptr<Task> task = read_data(options, inputs, false);
  if (task->eval_set()) return task->train_set().samples.size();
  throw usage_error("--halving needs evaluation data: give eval or eval-fraction");
}

void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs) {
  if (runs.empty()) return;
  comm.note("reading data and model", -1);
  agree_on_errors(comm, [&] {
    if (comm.local_rank() == 0) read_and_check(grid, runs, comm.size(), inputs);
  });
  discard_held_lines();
}

}  // namespace finetune
