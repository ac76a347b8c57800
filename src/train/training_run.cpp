// Evaluates a run, waits for its inputs' checksums, and describes it in the log.
#include "train/training_run.h"

#include <algorithm>
#include <numeric>

#include "core/log.h"
#include "core/process_stats.h"
#include "core/text/counted.h"
#include "core/threads/parallel.h"
#include "engine/pooled_weights.h"
#include "inference/batch_dispatch.h"
#include "train/layout/stages.h"
#include "train/options/option_values.h"
#include "train/plan/device_forecast.h"
#include "train/prepare/learner.h"
#include "train/run/layout_table.h"
#include "train/run/process_check.h"
#include "weights/hub_cache.h"

namespace finetune {

Error too_little_memory(const Machine& machine, const Settings& settings, const Learner& learner,
                        const SampleSet* eval) {
  const TrainOptions& options = settings.options;
  const ModelPart held = own_part(machine, settings);
  const ParameterTable table(settings.config, settings.head, held);
  Backend* backend = learner.engine ? &learner.engine->backend() : nullptr;
  const Communicator& replicas = machine.groups->data();
  DeviceRun run{settings.config,
                table,
                learner.objective->samples(),
                eval ? std::optional<SampleView>(eval->samples) : std::nullopt,
                *options.batch_size,
                *options.virtual_shards,
                part(*options.virtual_shards, replicas.size(), replicas.rank()),
                options.precision == "bf16" ? DType::bf16 : DType::f32,
                replicas.size(),
                lowest_trained_layer(options, settings.config),
                bucket_bytes(options),
                wire_type(options),
                backend && backend->library_attention(),
                backend && backend->has_second_stream(),
                options.micro_batches.value_or(0),
                held,
                activation_slots(machine, settings),
                options.offload_activations.value_or(0),
                settings.evaluation};
  run.device_bytes = machine.device_at_start.free + machine.device_at_start.used;
  run.keeps_attention_masks = backend && backend->keeps_attention_masks();
  const Coordinates place = machine.groups->place();
  if (learner.peers_along(Axis::pipeline)) {
    const auto sent =
        DeviceMessages::sent_by(place.p, machine.layout().pp(), int(held.chunks.size()));
    run.outboxes = sent.count();
    run.evaluation_outboxes = settings.has_eval && sent.activations;
  }
  if (learner.peers_along(Axis::tensor)) {
    run.tensor_rank = place.t;
    run.tensor_ranks = machine.layout().tp();
  }
  return too_little_device_memory(run, settings.micro_batch_tokens, options.recompute,
                                  machine.device_at_start,
                                  backend ? backend->device_memory() : machine.device_at_start);
}

void Inputs::keep_sums(CheckpointState& state) const {
  auto keep = [](Fingerprint& fingerprint, std::string& kept, const char* what) {
    const std::string& now = fingerprint.result();
    if (!kept.empty() && kept != now) {
      throw data_error("--resume: ", what, " has changed since the run began (sha256 ",
                       now.substr(0, 12), "…, then ", kept.substr(0, 12),
                       "…); give the run's own, or start another --output");
    }
    kept = now;
  };
  keep(*data_sum, state.data_sha256, "the data");
  keep(*model_sum, state.model_sha256, "--model");
}

Error diverged(int64_t step, const std::string& what) {
  return Error(ExitCode::diverged, concat("diverged at step ", step, ": ", what,
                                          "; a smaller --lr or a longer --warmup-ratio may help"));
}

namespace {

// Gives the evaluator the logits of all samples, in their order. Returns the number of samples.
int64_t add_logits(Evaluator& evaluator, const std::vector<float>& logits) {
  const int64_t outputs = evaluator.head().outputs;
  int64_t given = 0;
  while (const auto chunk = evaluator.next()) {
    PackedBatch batch;
    batch.indices.resize(size_t(chunk->samples.size()));
    std::iota(batch.indices.begin(), batch.indices.end(), uint32_t(given));
    evaluator.add(batch, logits.data() + given * outputs);
    given += chunk->samples.size();
  }
  return given;
}

}  // namespace

std::unique_ptr<Evaluator> evaluate(const TrainingRun& run, Metrics& metrics,
                                    const std::function<bool(double)>& poll) {
  const Learner& learner = run.learner;
  Communicator& world = run.machine.world;
  Engine& engine = *learner.engine;
  BatchDispatcher dispatcher = learner.replica_stages
                                   ? BatchDispatcher(engine, *learner.replica_stages)
                                   : BatchDispatcher(engine, world);
  learner.step->settle();
  const Uncounted evaluating(learner.tensor_sum.get());
  if (!run.inputs) {
    dispatcher.serve();
    return nullptr;
  }
  const int64_t step = run.state.step;
  world.note("evaluation", step);
  double start = seconds_since_start();
  std::unique_ptr<Evaluator> evaluator = run.inputs->task->start_evaluation();
  const int64_t tokens =
      evaluation_tokens(engine.backend(), engine.config(), run.settings.micro_batch_tokens,
                        engine.part().tensor_shards);
  std::optional<int64_t> samples;
  try {
    samples = learner.out_of_fold.empty() ? dispatcher.evaluate(*evaluator, tokens, poll)
                                          : add_logits(*evaluator, learner.out_of_fold);
  } catch (const Error& error) {
    if (error.code() == ExitCode::diverged) throw diverged(step, error.what());
    throw;
  }
  dispatcher.done();
  if (!samples) return nullptr;
  metrics = evaluator->metrics();
  double seconds = std::max(1e-9, seconds_since_start() - start);
  metrics["eval_runtime"] = seconds;
  metrics["eval_samples_per_second"] = double(*samples) / seconds;
  return evaluator;
}

namespace {

void describe_layout(const Machine& machine, const Settings& settings, std::string_view order) {
  const Communicator& world = machine.world;
  log(counted(world.size(), "process", "processes"), " on ", counted(world.hosts(), "host"), ", ",
      counted(threads(), "thread"), " each; --virtual-shards ", *settings.options.virtual_shards,
      order);
  const LayoutRun run = layout_run(machine, settings);
  for (const auto& line : layout_lines({run, host_names(world)})) log(line);
  for (const auto& line : layout_warnings(run)) warn(line);
}

void describe_machine(const Machine& machine, const Settings& settings, const Learner& learner) {
  const TrainOptions& options = settings.options;
  const TrainingStep& step = *learner.step;
  Engine& engine = *learner.engine;
  log("computing on ", engine.backend().description(), ", ", describe_micro_batches(options));
  if (machine.has_parts()) {
    describe_layout(machine, settings, step.order());
  } else {
    for (const auto& line :
         describe_processes(machine.world, *options.virtual_shards, step.order())) {
      log(line);
    }
  }
  if (!step.route().empty()) log(step.route());
  if (const int64_t bytes = engine.encoder().offloaded_bytes(); bytes > 0) {
    log("inputs of layers wait in ", (bytes + (1 << 20) - 1) >> 20,
        " MiB of the host's memory, loading horizon ", *options.offload_activations);
  }
  if (machine.has_parts() && !engine.backend().uses_host_memory()) {
    log("what stages and tensor ranks exchange goes ", route_of(learner.peers.get()));
  }
}

}  // namespace

void describe_run(const Machine& machine, const Settings& settings, const Inputs& inputs,
                  const Learner& learner, const std::vector<std::string>& loaded,
                  const std::vector<std::string>& remarks) {
  const EncoderConfig& config = settings.config;
  const bool pools = pooling_of(config) == Pooling::mean;
  log("model: ", inputs.model.string(), ", ",
      counted(config.num_hidden_layers - (pools ? 1 : 0), "layer"),
      pools ? " and one that pools" : "", ", hidden ", config.hidden_size, ", ",
      counted(ParameterTable(config, settings.head).count(), "parameter"));
  if (const auto origin = hub_origin(inputs.model)) {
    log("of the Hugging Face cache: ", origin->id, ", commit ", origin->revision);
  }
  for (const auto& line : loaded) log(line);
  for (const auto& line : inputs.task->describe()) log(line);
  for (const auto& line : repeated_data(inputs.data)) warn(line);
  describe_machine(machine, settings, learner);
  for (const std::string& line : remarks) {
    if (!line.empty()) log(line);
  }
  if (is_quick(settings.options)) return;  // it has no schedule
  const Schedule& schedule = settings.schedule;
  log(counted(schedule.total_steps, "step"), " of ",
      counted(*settings.options.batch_size, "sample"), ", ", schedule.warmup_steps,
      " of them warm-up");
  if (const std::string fault = warmup_fault(schedule); !fault.empty()) warn(fault);
}

}  // namespace finetune
