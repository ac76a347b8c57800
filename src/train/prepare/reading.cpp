// Reads data and model, and compares them with those of a finished run.
#include "train/prepare/reading.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/files/files.h"
#include "core/threads/parallel.h"
#include "engine/model_outputs.h"
#include "inference/equal_processes.h"
#include "train/layout/stages.h"
#include "train/resume.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);

// Throws Error with the exit code of the signal that came, if one came.
void check_stop(const SignalGuard& signals, std::string_view when) {
  const StopRequest request = signals.request();
  if (request == StopRequest::none) return;
  throw Error(exit_code_of(request), concat("stopped by a signal ", when, "; nothing is written"));
}

DataFiles open_data_files(const Context& context, const TrainOptions& options) {
  if (context.world.hosts() > 1) require_no_pipes(options, context.world.hosts());
  return context.inputs.open(
      options, [&] { check_stop(context.signals, "while reading data from a pipe"); });
}

// Opens the weights and checks that the model's files are there. Returns rank 0's tokenizer files.
std::map<std::string, std::string> open_source(const Context& context, OpenModel& model) {
  model.source = open_weights_of(model.files);
  if (!context.reads()) return {};
  for (const fs::path& file : model_files(model.files, *model.source)) {
    require_file(file, ExitCode::model);
  }
  if (!context.leads()) return {};
  return contents_of(model.files.tokenizer->files(), ExitCode::model);
}

Reading read_on_this_process(const Context& context, const ChosenMachine& chosen,
                             const TrainOptions& options, const Output& output) {
  Reading out;
  const LayoutGroups& groups = *chosen.machine.groups;
  // One of the processes that share weights reads them.
  const bool reads_weights = groups.data().local_rank() == 0;
  if (reads_weights) require_no_pipe(options.model);
  ModelFiles& model = out.model.files;
  model = context.reads() ? open_model(options.model, !options.reinit)
                          : open_model_config(options.model, reads_weights && !options.reinit);
  lowest_trained_layer(options, model.config);  // refuses layers that the model does not have
  stages_of(options, model.config, HeadKind::sequence);
  if (reads_weights) out.inputs.tokenizer_files = open_source(context, out.model);
  if (!context.reads()) return out;
  const int own_threads = threads();
  set_threads(
      std::max(own_threads, std::min(own_threads * context.world.local_size(), available_cores())));
  if (context.leads() && options.overwrite) {
    check_own_inputs_survive(options, model, *out.model.source);
  }
  Inputs& inputs = out.inputs;
  inputs.model = model.directory.directory;
  inputs.data = open_data_files(context, options);
  inputs.task =
      context.inputs.read(options, inputs.data, model, *out.model.source, output.label_order);
  if (!context.keeps_inputs) context.inputs.forget_task();
  if (context.leads()) {
    out.assertions =
        read_assertions(options, metrics_of_run(options, groups.layout(), *inputs.task,
                                                model.config, !chosen.backend->uses_host_memory()));
    out.best_metric = checked_best_metric(options, *inputs.task);
  }
  return out;
}

}  // namespace

Reading read_data_and_model(const Context& context, const ChosenMachine& chosen,
                            const TrainOptions& options, const Output& output) {
  context.world.note("reading data and model", -1);
  Reading out;
  agree_on_errors(context.world, [&] {
    try {
      out = read_on_this_process(context, chosen, options, output);
    } catch (const Error& error) {
      if (output.found) blame_checkpoint(error, output.found->file.path, output.adopted);
      throw;
    }
  });
  require_equal_configs(context.world, out.model.files.config);
  return out;
}

void start_sums(const Context& context, const OpenModel& model, Inputs& inputs) {
  const std::vector<fs::path> files = model_files(model.files, *model.source);
  inputs.data_sum = context.inputs.sum(inputs.data.all(), ExitCode::data);
  inputs.model_sum = context.inputs.sum({files.begin(), files.end()}, ExitCode::model);
}

void compare_finished(const Context& context, const TrainOptions& options,
                      const RunDirectory& directory) {
  context.world.note("comparing data and model with the finished run's", -1);
  CheckpointState state;
  take_finished_sums(directory, state);
  Inputs inputs;
  inputs.data = open_data_files(context, options);
  require_no_pipe(options.model);
  OpenModel model{open_model(options.model, !options.reinit), nullptr};
  open_source(context, model);
  start_sums(context, model, inputs);
  while (!inputs.data_sum->finished() || !inputs.model_sum->finished()) {
    check_stop(context.signals, "while comparing data and model with the finished run's");
    std::this_thread::sleep_for(kPollInterval);
  }
  inputs.keep_sums(state);
}

}  // namespace finetune
