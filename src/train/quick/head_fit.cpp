// Features of a frozen encoder on all processes, and the fit on rank 0.
#include "train/quick/head_fit.h"

#include <algorithm>
#include <exception>

#include "comm/agreement.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "engine/pretrained.h"
#include "inference/batch_dispatch.h"
#include "inference/sample_outputs.h"
#include "train/quick/fold_fits.h"
#include "train/quick/named_fit.h"
#include "train/resume.h"

namespace finetune {
namespace {

// On rank 0 the features; on others nothing.
std::vector<float> features_of(const Machine& machine, const Settings& settings, Engine& engine,
                               const SampleView& samples, const std::function<void()>& check_stop) {
  BatchDispatcher dispatcher(engine, machine.world);
  const double start = seconds_now();
  std::vector<float> features;
  std::exception_ptr stopped;
  if (machine.leads()) {
    const int64_t tokens =
        evaluation_tokens(engine.backend(), engine.config(), settings.micro_batch_tokens);
    features =
        sample_outputs(dispatcher, samples, engine.table().head(), tokens, [&](double share) {
          if (seconds_now() - start > 1)
            show_progress(concat("features of the encoder  ", format_fixed(100 * share, 0), " %"));
          try {
            check_stop();
          } catch (const Error&) {
            stopped = std::current_exception();
          }
          return stopped == nullptr;
        });
    clear_progress();
  } else {
    dispatcher.serve();
  }
  agree_on_errors(machine.world, [&] {
    if (stopped) std::rethrow_exception(stopped);
  });
  return features;
}

}  // namespace

std::unique_ptr<WeightSource> weights_to_start_with(const Settings& settings,
                                                    const WeightSource* encoder,
                                                    const LinearHead* head) {
  if (!encoder || !fits_head(settings.options)) return nullptr;
  const auto outputs = size_t(settings.head.outputs);
  const LinearHead none{std::vector<float>(outputs * size_t(settings.config.hidden_size)),
                        std::vector<float>(outputs)};
  return pooled_weights(*encoder, settings.config, head ? *head : none);
}

std::unique_ptr<Engine> make_pooled_engine(const Machine& machine, const Settings& settings,
                                           const WeightSource* source, const LinearHead& head) {
  const EncoderConfig& config = settings.config;
  Communicator& replicas = machine.groups->data();
  std::unique_ptr<Backend> backend;
  agree_on_errors(machine.world, [&] {
    backend = make_backend(device_of(machine.code_path), threads(), settings.options.precision,
                           machine.world.local_rank());
  });
  auto engine = std::make_unique<Engine>(std::move(backend), config,
                                         Head{HeadKind::sequence, int64_t(head.bias.size())},
                                         replicas, WeightUse::inference);
  agree_on_errors(machine.world, [&] {
    if (!source) return;
    const auto weights = pooled_weights(*source, config, head);
    engine->set_weights([&](float* arena) {
      load_pretrained(engine->table(), *weights, config.initializer_range, settings.options.seed,
                      HeadPolicy::fitted, arena);
    });
  });
  engine->share_weights(replicas);
  const int64_t tokens = evaluation_tokens(engine->backend(), config, settings.micro_batch_tokens);
  engine->reserve({}, {tokens, std::min(tokens, engine->evaluation_sequences())});
  return engine;
}

HeadFit fit_head(const Machine& machine, const Settings& settings, const TrainingArrays& arrays,
                 const SampleView& names, const WeightSource* source, Pooling pooling,
                 const std::function<void()>& check_stop) {
  Communicator& world = machine.world;
  world.note("features of the frozen encoder", -1);
  const double start = seconds_now();
  HeadFit out;
  std::vector<float> features;
  {
    const auto engine = make_pooled_engine(machine, settings, source,
                                           LinearHead::identity(settings.config.hidden_size));
    features = features_of(machine, settings, *engine, arrays.samples, check_stop);
    const auto more = features_of(machine, settings, *engine, names, check_stop);
    features.insert(features.end(), more.begin(), more.end());
  }
  const double computed = seconds_now() - start;
  const int64_t width = settings.config.hidden_size, outputs = settings.head.outputs;
  world.set_patient(!machine.leads());  // the fit is rank 0's
  agree_on_errors(world, [&] {
    if (!machine.leads()) return;
    LinearFit fit = fit_named_head(features, width, arrays, check_stop);
    out.head = std::move(fit.head);
    out.loss = fit.loss;
    if (settings.options.folds) {
      out.out_of_fold =
          out_of_fold_logits(features, width, arrays, int(*settings.options.folds), check_stop);
    }
    const char* pooled = pooling == Pooling::mean ? "mean-pooled" : "first-token";
    out.line = concat("a linear head was fitted to ", pooled,
                      " features of the frozen encoder: ", counted(arrays.samples.size(), "sample"),
                      ", features ", format_fixed(computed, 1), " s, fit ",
                      format_fixed(seconds_now() - start - computed, 1), " s, ",
                      counted(fit.iterations, "iteration"), ", loss ", format_fixed(fit.loss, 4));
    if (fit.has_names) {
      out.line += concat("; each label's name counts as one more sample (--no-label-names: none)");
    }
  });
  world.set_patient(false);
  out.head.weight.resize(size_t(outputs * width));
  out.head.bias.resize(size_t(outputs));
  world.broadcast(out.head.weight.data(), out.head.weight.size() * sizeof(float), 0);
  world.broadcast(out.head.bias.data(), out.head.bias.size() * sizeof(float), 0);
  out.tokens = int64_t(arrays.samples.ids.size());
  out.seconds = seconds_now() - start;
  return out;
}

void take_fit(const HeadFit& fit, int64_t samples, CheckpointState& state) {
  state.step = 1;
  state.epoch = 1;
  state.totals["loss"] = fit.loss;
  state.totals["seconds"] = state.totals["runtime"] = fit.seconds;
  state.totals["tokens"] = double(fit.tokens);
  state.totals["samples"] = double(samples);
}

}  // namespace finetune
