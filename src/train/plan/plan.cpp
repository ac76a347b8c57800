// Prepares a run as train does, and collects its plan.
#include "train/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/process_stats.h"
#include "core/threads/parallel.h"
#include "data/plan.h"
#include "distributed/layout/layout.h"
#include "distributed/zero_partition.h"
#include "engine/model_outputs.h"
#include "tasks/registry.h"
#include "train/layout/stages.h"
#include "train/plan/memory_forecast.h"
#include "train/plan/plan_time.h"
#include "train/quick/quick_start.h"
#include "train/recipe/recipe.h"
#include "train/resume.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

int64_t bytes_of_mb(double mb) {
  return int64_t(mb * 1024 * 1024);
}

// What a training run has when it is about to allocate.
struct Prepared {
  TrainOptions options;
  Layout layout;
  ModelFiles model;
  std::unique_ptr<Backend> backend;
  std::shared_ptr<Task> task;
  int lowest_layer = 0;
  int64_t steps = 0;
  int64_t weight_file_bytes = 0;
  int64_t micro_batch_tokens = 0;  // of evaluation, and of training without --micro-batches
  int64_t program_bytes = 0, data_bytes = 0;  // resident, measured
  DeviceMemory device;                        // before the run allocates
  std::string recipe;                         // the log line with the recipe's choices
  std::string warning;                        // about the schedule
};

Prepared prepare(const TrainOptions& given, int64_t processes, SharedInputs& inputs) {
  Prepared p;
  TrainOptions& o = p.options;
  o = with_fixed_recipe(given);
  if (o.output.empty()) o.output = "plan";  // not needed here
  validate(o);
  if (is_quick(o)) {
    throw usage_error("--recipe quick has nothing to plan: it keeps no gradients; train starts it");
  }
  o.device = processes > 1 && o.device == "auto" ? "cpu" : resolved_device(wanted_device(o));
  p.backend = make_backend(o.device, o.threads.value_or(0), o.precision);
  p.layout = layout_of(o, processes);
  if (!p.backend->uses_host_memory() && processes > 1) {
    throw usage_error("--processes ", processes,
                      ": plan forecasts one process of a GPU; --device cpu several of the CPU");
  }
  p.device = p.backend->device_memory();
  p.program_bytes = bytes_of_mb(resident_memory_mb());
  p.model = open_model(o.model, !o.reinit);
  p.lowest_layer = lowest_trained_layer(o, p.model.config);
  stages_of(o, p.model.config, HeadKind::sequence);  // refuses stages that the model cannot have
  auto source = open_weights_of(p.model);
  p.task = inputs.read(o, inputs.open(o, {}), p.model, *source, {});
  p.data_bytes = bytes_of_mb(resident_memory_mb()) - p.program_bytes;
  check_initial(o, p.model.config, ParameterTable(p.model.config, p.task->head()), *source,
                p.task->head_rows());
  read_assertions(
      o, metrics_of_run(o, p.layout, *p.task, p.model.config, !p.backend->uses_host_memory()));
  checked_best_metric(o, *p.task);
  const RecipeFacts facts = recipe_facts(o, *p.task, p.model.config);
  const bool would_be_quick = takes_quick(o, *p.task, p.model.config);
  p.recipe = fill_recipe(o, given, facts);
  if (would_be_quick) {
    p.recipe += concat("\n", line_of_quick(facts.samples, facts.labels), ", as is planned here");
  }
  const Schedule schedule = make_schedule(o, p.task->train_set().samples.size());
  p.steps = schedule.total_steps;
  p.warning = warmup_fault(schedule);
  for (const auto& file : source->files()) {
    p.weight_file_bytes += int64_t(file_bytes(file, ExitCode::model));
  }
  take_layout_defaults(o, p.layout);
  p.micro_batch_tokens = o.micro_batch_tokens.value_or(
      auto_micro_batch_tokens(p.model.config, p.task->max_length(), p.device.total));
  if (!o.micro_batches) o.micro_batch_tokens = p.micro_batch_tokens;
  return p;
}

// Loads the weights as train does, after everything has been measured.
void check_weights(const Prepared& p, const ParameterTable& table) {
  const ParameterTable whole(p.model.config, table.head());
  std::vector<float> arena(size_t(table.size()));
  load_initial(p.options, p.model.config, whole, table, *open_given_weights(p.model),
               p.task->head_rows(), arena.data());
}

DevicePlan plan_device(const Prepared& p, const DeviceRun& run, int64_t tokens) {
  const int64_t usable = usable_device_memory(p.device);
  DevicePlan plan;
  plan.memory = forecast_device_memory(run, tokens, p.options.recompute);
  plan.program = p.device.used;
  plan.available = p.device.used + usable;
  plan.fits = plan.memory.total() <= usable;
  plan.fitting_tokens = fitting_micro_batch_tokens(run, tokens, p.options.recompute, usable);
  plan.fitting_tokens_recomputed = fitting_micro_batch_tokens(run, tokens, true, usable);
  return plan;
}

}  // namespace

RunPlan plan_run(const TrainOptions& given, int64_t processes, bool measure_time,
                 SharedInputs& inputs) {
  Prepared p = prepare(given, processes, inputs);
  const double startup = seconds_since_start();
  const TrainOptions& options = p.options;
  const SampleSet& train = p.task->train_set();
  RunPlan plan;
  plan.task = std::string(name_of(p.task->kind()));
  plan.backend = p.backend->description();
  plan.recipe = p.recipe;
  plan.warning = p.warning;
  plan.processes = processes;
  plan.shards = *options.virtual_shards;
  plan.samples = train.samples.size();
  plan.train_tokens = int64_t(train.samples.ids.size());
  if (const SampleSet* eval = p.task->eval_set()) {
    plan.eval_samples = eval->samples.size();
    plan.eval_tokens = int64_t(eval->samples.ids.size());
  }
  plan.batch_size = *options.batch_size;
  plan.recompute = options.recompute;
  plan.micro_batch_tokens = p.micro_batch_tokens;
  plan.micro_batches = options.micro_batches.value_or(0);

  const PlannedParts parts(options, p.model.config, p.task->head(), p.layout, *p.backend,
                           train.samples);
  const ModelPart held = parts.first();
  const auto work_with = [&](int64_t tokens, int64_t runs) {
    return workload_of(*p.task, options, p.steps, {tokens, runs},
                       evaluation_tokens(*p.backend, p.model.config, tokens, held.tensor_shards));
  };
  plan.work = work_with(plan.micro_batch_tokens, plan.micro_batches);

  const ParameterTable table(p.model.config, p.task->head(), held);
  const ParameterTable whole(p.model.config, p.task->head());
  plan.parameters = whole.count();
  plan.disk =
      forecast_disk(options, whole, p.steps, steps_per_epoch(plan.samples, *options.batch_size),
                    plan.eval_samples > 0);
  if (!parts.whole()) plan.layout = p.layout;
  DeviceRun on_device{
      p.model.config,
      table,
      train.samples,
      p.task->eval_set() ? std::optional<SampleView>(p.task->eval_set()->samples) : std::nullopt,
      *options.batch_size,
      plan.shards,
      part(plan.shards, processes, 0),
      p.backend->compute_type(),
      processes,
      p.lowest_layer,
      bucket_bytes(options),
      wire_type(options),
      p.backend->library_attention(),
      p.backend->has_second_stream(),
      plan.micro_batches,
      held};
  on_device.keeps_attention_masks = p.backend->keeps_attention_masks();
  on_device.horizon = options.offload_activations.value_or(0);
  on_device.device_bytes = p.device.free + p.device.used;
  if (!p.backend->uses_host_memory()) {
    plan.device = plan_device(p, on_device, plan.micro_batch_tokens);
  }

  const int64_t before = bytes_of_mb(resident_memory_mb());
  const int all_threads = threads();
  if (!options.threads) set_threads(int(std::max<int64_t>(1, all_threads / processes)));
  if (!plan.device || plan.device->fits) {
    probe_memory(*p.backend, p.model.config, p.task->head(), held.tensor_shards, plan.work,
                 plan.recompute);
  }
  set_threads(all_threads);
  const int64_t working = bytes_of_mb(resident_memory_mb()) - before;

  const RunFacts facts{
      p.lowest_layer,
      p.task->head().kind == HeadKind::masked
          ? std::vector<bool>(size_t(p.model.config.vocab_size), true)  // the decoder reads all
          : words_of(train.samples, options, p.steps, p.model.config.vocab_size),
      p.weight_file_bytes,
      p.program_bytes + working,
      bytes_of_mb(resident_file_mb()),
      p.data_bytes};
  auto forecast = [&](const Workload& work, int64_t runs, int64_t tokens, bool recompute) {
    if (!plan.device) return parts.forecast(facts, work, runs, tokens, recompute);
    MemoryForecast m = parts.forecast_beside_device(facts);
    m.activations = plan.device->memory.offloaded;
    m.peak += m.activations;
    m.host += m.activations;
    return m;
  };
  plan.memory = forecast(plan.work, plan.micro_batches, plan.micro_batch_tokens, options.recompute);

  const int64_t largest = plan.work.training.tokens;
  const int64_t most_runs = part(*options.batch_size, plan.shards, 0).size();
  for (int divisor : {1, 2, 4}) {
    const int64_t runs = plan.micro_batches * divisor;
    const int64_t tokens = divisor == 1 || runs > 0 ? plan.micro_batch_tokens : largest / divisor;
    const bool smaller = runs > 0
                             ? runs <= most_runs
                             : tokens < plan.micro_batch_tokens && tokens >= p.task->max_length();
    if (divisor > 1 && !smaller) continue;
    const Workload work = divisor == 1 ? plan.work : work_with(tokens, runs);
    plan.alternatives.push_back({divisor, tokens, runs, forecast(work, runs, tokens, false),
                                 forecast(work, runs, tokens, true)});
    if (!plan.device) continue;
    on_device.micro_batches = runs;
    auto bytes = [&](bool recompute) {
      return p.device.used + forecast_device_memory(on_device, tokens, recompute).total();
    };
    plan.alternatives.back().kept_on_device = bytes(false);
    plan.alternatives.back().recomputed_on_device = bytes(true);
  }
  check_weights(p, table);
  plan.available_mb = available_memory_mb();
  const bool host_is_small =
      plan.available_mb > 0 &&
      plan.memory.host > bytes_of_mb(plan.available_mb + resident_memory_mb());
  plan.too_large = measure_time && (host_is_small || (plan.device && !plan.device->fits));
  plan.time_wanted = measure_time;
  if (!measure_time || plan.too_large || plan.layout) return plan;
  plan.time = measure_time_of(
      {options, std::move(p.backend), p.model.config, *p.task, p.micro_batch_tokens}, plan.work);
  plan.time.startup = startup;
  const auto total_with = [&](double step) {  // scales evaluations like steps
    return startup + step * double(plan.work.steps) +
           plan.time.evaluation * (step / plan.time.step) * double(plan.work.evaluations);
  };
  plan.time.total = total_with(plan.time.step);
  plan.time.total_low = total_with(plan.time.step_low);
  plan.time.total_high = total_with(plan.time.step_high);
  plan.timed = true;
  return plan;
}

}  // namespace finetune
