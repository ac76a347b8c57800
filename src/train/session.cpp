// A session's evaluation, fingerprints and out-of-memory message.
#include "train/session.h"

#include <algorithm>

#include "core/log.h"
#include "core/process_stats.h"
#include "core/text/counted.h"
#include "core/threads/parallel.h"
#include "inference/batch_dispatch.h"
#include "train/layout/stages.h"
#include "train/options/option_values.h"
#include "train/plan/device_forecast.h"
#include "train/run/layout_table.h"
#include "train/run/process_check.h"
#include "weights/hub_cache.h"

namespace finetune {

Error Session::too_little_memory() const {
  const ModelPart held = own_part(*this);
  const ParameterTable table(model.config, head, held);
  const SampleSet* eval = task ? task->eval_set() : nullptr;
  DeviceRun run{model.config,
                table,
                objective->samples(),
                eval ? std::optional<SampleView>(eval->samples) : std::nullopt,
                *options.batch_size,
                *options.virtual_shards,
                part(*options.virtual_shards, groups->data().size(), groups->data().rank()),
                options.precision == "bf16" ? DType::bf16 : DType::f32,
                groups->data().size(),
                lowest_trained_layer(options, model.config),
                bucket_bytes(options),
                wire_type(options),
                engine && engine->backend().library_attention(),
                options.micro_batches.value_or(0),
                held,
                activation_slots(*this),
                options.offload_activations.value_or(0),
                evaluation};
  const int stage = groups->place().p, stages = groups->layout().pp();
  if (peers_along(Axis::pipeline)) {
    const auto sent = DeviceMessages::sent_by(stage, stages, int(held.chunks.size()));
    run.outboxes = sent.count();
    run.evaluation_outboxes = has_eval && sent.activations;
  }
  if (peers_along(Axis::tensor)) {
    run.tensor_rank = groups->place().t;
    run.tensor_ranks = groups->layout().tp();
  }
  return too_little_device_memory(run, micro_batch_tokens, options.recompute, device_at_start,
                                  engine ? engine->backend().device_memory() : device_at_start);
}

void Session::wait_for_fingerprints() {
  auto check = [&](Fingerprint* fingerprint, std::string& kept, const char* what) {
    if (fingerprint == nullptr) return;
    const std::string& now = fingerprint->result();
    if (!kept.empty() && kept != now) {
      throw data_error("--resume: ", what, " has changed since the run began (sha256 ",
                       now.substr(0, 12), "…, then ", kept.substr(0, 12),
                       "…); give the run's own, or start another --output");
    }
    kept = now;
  };
  check(data_fingerprint.get(), state.data_sha256, "the data");
  check(model_fingerprint.get(), state.model_sha256, "--model");
}

Error diverged(int64_t step, const std::string& what) {
  return Error(ExitCode::diverged, concat("diverged at step ", step, ": ", what,
                                          "; a smaller --lr or a longer --warmup-ratio may help"));
}

std::unique_ptr<Evaluator> Session::evaluate(Metrics& metrics,
                                             const std::function<bool(double)>& poll) {
  BatchDispatcher dispatcher =
      replica_stages ? BatchDispatcher(*engine, *replica_stages) : BatchDispatcher(*engine, comm);
  step->settle();
  const Uncounted evaluating(tensor_sum.get());
  if (!leads()) {
    dispatcher.serve();
    return nullptr;
  }
  comm.note("evaluation", state.step);
  double start = seconds_since_start();
  std::unique_ptr<Evaluator> evaluator = task->start_evaluation();
  const int64_t tokens = evaluation_tokens(engine->backend(), model.config, micro_batch_tokens,
                                           engine->part().tensor_shards);
  std::optional<int64_t> samples;
  try {
    samples = dispatcher.evaluate(*evaluator, tokens, poll);
  } catch (const Error& error) {
    if (error.code() == ExitCode::diverged) throw diverged(state.step, error.what());
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

void describe_layout(const Session& s) {
  log(counted(s.comm.size(), "process", "processes"), " on ", counted(s.comm.hosts(), "host"), ", ",
      counted(threads(), "thread"), " each; --virtual-shards ", *s.options.virtual_shards,
      s.step->order());
  const LayoutRun run = layout_run(s);
  for (const auto& line : layout_lines({run, host_names(s.comm)})) log(line);
  for (const auto& line : layout_warnings(run)) warn(line);
}

}  // namespace

void describe_session(const Session& s, const std::vector<std::string>& loaded,
                      const std::vector<std::string>& warnings) {
  const Engine& engine = *s.engine;
  log("model: ", s.model.directory.directory.string(), ", ",
      counted(engine.config().num_hidden_layers, "layer"), ", hidden ", engine.config().hidden_size,
      ", ", ParameterTable(engine.config(), s.head).count(), " parameters");
  if (const auto origin = hub_origin(s.model.directory.directory)) {
    log("of the Hugging Face cache: ", origin->id, ", commit ", origin->revision);
  }
  for (const auto& line : loaded) log(line);
  for (const auto& line : s.task->describe()) log(line);
  for (const auto& line : repeated_data(s.data)) warn(line);
  log("computing on ", s.engine->backend().description(), ", ", describe_micro_batches(s.options));
  const int64_t shards = *s.options.virtual_shards;
  if (!s.has_parts()) {
    for (const auto& line : describe_processes(s.comm, shards, s.step->order())) log(line);
  } else {
    describe_layout(s);
  }
  if (!s.step->route().empty()) log(s.step->route());
  if (const int64_t bytes = s.engine->bert().offloaded_bytes(); bytes > 0) {
    log("inputs of layers wait in ", (bytes + (1 << 20) - 1) >> 20,
        " MiB of the host's memory, loading horizon ", *s.options.offload_activations);
  }
  if (s.has_parts() && !s.engine->backend().uses_host_memory()) {
    log("what stages and tensor ranks exchange goes ", route_of(s.peers.get()));
  }
  for (const std::string& line : warnings) {
    if (!line.empty()) log(line);
  }
  log(counted(s.schedule.total_steps, "step"), " of ", counted(*s.options.batch_size, "sample"),
      ", ", s.schedule.warmup_steps, " of them warm-up");
  if (const std::string fault = warmup_fault(s.schedule); !fault.empty()) warn(fault);
}

}  // namespace finetune
