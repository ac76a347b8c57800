// Chooses device and precision, and lets rank 0 resolve the options.
#include "train/prepare/resolving.h"

#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/threads/parallel.h"
#include "distributed/rank0_values.h"
#include "engine/model_outputs.h"
#include "tasks/registry.h"
#include "train/layout/stages.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/quick/quick_start.h"
#include "train/recipe/recipe.h"
#include "train/resume.h"
#include "train/run/process_check.h"
#include "train/run/run_setup.h"

namespace finetune {

ChosenMachine choose_machine(Communicator& world, TrainOptions& options, const Output& output) {
  std::unique_ptr<LayoutGroups> groups = make_groups(world, options);
  std::string wanted = wanted_device(options);
  if (wanted == "auto" && output.found) wanted = device_of(output.found->state.code_path);
  std::string unused_gpu;
  const std::string device = agreed_device(world, broadcast_from_rank0(world, wanted), unused_gpu);
  options.precision = agreed_precision(world, device, options.precision);
  const int threads = options.threads ? int(*options.threads) : cores_for_process(world);
  std::unique_ptr<Backend> backend;
  agree_on_errors(world, [&] {
    backend = make_backend(device, threads, options.precision, world.local_rank());
  });
  const DeviceMemory at_start = backend->device_memory();
  const std::string code_path = backend->code_path();
  if (options.precision == "bf16") require_equal_code_paths(world, groups->tensor(), code_path);
  return {{world, std::move(groups), code_path, at_start},
          std::move(backend),
          {unused_gpu, code_path_warning(world, code_path), binding_advice(world)}};
}

namespace {

// Numbers that rank 0 computes from the data and sends to all processes.
struct Facts {
  MicroBatchLimits evaluation;
  int64_t has_eval = 0;
  int64_t step = -1;  // of the checkpoint to continue; -1: there is none
  int64_t micro_batch_tokens = 0;
};

}  // namespace

Resolved resolve_options(const Machine& machine, const Backend& backend, const Reading& reading,
                         const Output& output, Settings& settings) {
  Communicator& world = machine.world;
  TrainOptions& options = settings.options;
  agree_on_errors(world, [&] {
    settings.config =
        config_of_run(options, reading.model.files.config, reading.model.files.directory.directory);
  });
  Facts facts;
  Resolved out;
  const int64_t device_bytes = least_device_bytes(world, backend);
  if (world.rank() == 0) {
    const Task& task = *reading.inputs.task;
    options.best_metric = reading.best_metric;
    options.task = finetune::name_of(task.kind());
    options.max_length = task.max_length();
    options.head_init = resolved_head_init(options, task, settings.config);
    const RecipeFacts of_run = recipe_facts(options, task, settings.config);
    out.remarks.push_back(fill_recipe(options, settings.given, of_run));
    out.remarks.push_back(warning_of_lost_mix(options, settings.given, task.kind()));
    out.remarks.push_back(level_of(options, of_run));
    facts.micro_batch_tokens = options.micro_batch_tokens.value_or(
        auto_micro_batch_tokens(settings.config, task.max_length(), device_bytes));
    take_layout_defaults(options, machine.layout());
    if (!options.micro_batches) options.micro_batch_tokens = facts.micro_batch_tokens;
    if (const SampleSet* eval = task.eval_set()) {
      facts.has_eval = 1;
      const int64_t tokens = evaluation_tokens(backend, settings.config, facts.micro_batch_tokens,
                                               *options.tensor_shards);
      facts.evaluation = micro_batch_limits(eval->samples, MicroBatching::of_tokens(tokens),
                                            Engine::kEvaluationSequences);
    }
    if (output.found) facts.step = output.found->state.step;
  }
  options = options_from_text(broadcast_from_rank0(world, options_to_text(options)));
  world.broadcast(&facts, sizeof facts, 0);
  settings.evaluation = facts.evaluation;
  settings.micro_batch_tokens = facts.micro_batch_tokens;
  settings.has_eval = facts.has_eval != 0;
  out.step = facts.step;
  return out;
}

}  // namespace finetune
