// Reads what runs share and checks their options against it.
#include "experiments/sweep/preflight.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "comm/agreement.h"
#include "core/files/files.h"
#include "core/log.h"
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
      : model(open_model(options.model)),
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

// Of data that other runs read: what can be told without reading them.
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

void read_and_check(const Grid& grid, const std::vector<size_t>& runs, int processes,
                    SharedInputs& inputs) {
  const TrainOptions& first = grid.runs[runs.front()].options;
  require_no_pipe(first.model);
  const OpenInputs open(first, inputs);
  const auto task = open.read(first, inputs);
  const std::string key = SharedInputs::key(first);
  std::set<std::string> keys{key};
  for (size_t place : runs) {
    const SweepRun& run = grid.runs[place];
    const std::string own = SharedInputs::key(run.options);
    try {
      if (keys.insert(own).second) check_openable(run.options, inputs);
      if (own != key) continue;
      require_options_of(task->kind(), run.options);
      lowest_trained_layer(run.options, open.model.config);
      checked_best_metric(run.options, *task);
      read_assertions(run.options,
                      metrics_of_run(run.options, layout_of(run.options, processes), *task,
                                     may_be_on_gpu(wanted_device(run.options))));
    } catch (const Error& error) {
      throw Error(error.code(), concat(grid.file, ": run ", run.name, ": ", error.what()));
    }
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
  // Once, for all processes that find it in their memory.
  if (task->eval_set()) task->baselines();
}

InputSums input_sums(const TrainOptions& options, SharedInputs& inputs) {
  const OpenInputs open(options, inputs);
  const auto data = open.sum_data(inputs);
  return {data->result(), open.sum_model(inputs)->result()};
}

std::vector<size_t> in_order_of_data(const Grid& grid, std::vector<size_t> runs) {
  std::vector<std::string> keys;
  auto place = [&](size_t run) {
    const std::string key = SharedInputs::key(grid.runs[run].options);
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) return found - keys.begin();
    keys.push_back(key);
    return ptrdiff_t(keys.size()) - 1;
  };
  std::vector<std::pair<ptrdiff_t, size_t>> order;
  for (size_t run : runs) order.emplace_back(place(run), run);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = order[i].second;
  return runs;
}

namespace {

RecipeFacts facts_of_data(const TrainOptions& options, SharedInputs& inputs) {
  const std::shared_ptr<Task> task = read_data(options, inputs, false);
  if (task->eval_set()) return recipe_facts(*task, open_model(options.model).config);
  throw usage_error("--halving needs evaluation data: give eval or eval-fraction");
}

}  // namespace

std::vector<RunLength> lengths_of(const Grid& grid, SharedInputs& inputs) {
  std::vector<RunLength> lengths(grid.runs.size());
  std::vector<size_t> all(lengths.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::string key;
  RecipeFacts facts;
  for (size_t run : in_order_of_data(grid, all)) {
    const TrainOptions& options = grid.runs[run].options;
    const std::string own = SharedInputs::key(options);
    if (own != key) facts = facts_of_data(options, inputs);
    key = own;
    lengths[run] = length_of(options, facts);
  }
  return lengths;
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
