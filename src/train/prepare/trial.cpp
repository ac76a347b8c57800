// Measures the time of some steps and of evaluating some rows.
#include "train/prepare/trial.h"

#include <algorithm>

#include "comm/agreement.h"
#include "core/clock.h"
#include "core/threads/parallel.h"
#include "inference/batch_dispatch.h"
#include "train/layout/stages.h"
#include "train/prepare/learner.h"
#include "train/quick/head_fit.h"
#include "train/resume.h"

namespace finetune {
namespace {

// Assumed rates for costs that are not measured: bytes per second of writing and reading back
// checkpoints, and of exported models; the speed of a fit, which computes in single precision.
constexpr double kCheckpointBytes = 4e8, kExportBytes = 2e8;
constexpr double kFitShareOfSpeed = 0.2, kFitPasses = 150 * 4;
constexpr double kExit = 0.4, kSecondsARow = 1e-4, kSecondsALogit = 5e-7;

class Trial {
 public:
  Trial(const Context& context, const Machine& machine, const Settings& settings,
        const TrainingArrays& arrays, const WeightSource* weights)
      : context_(context), machine_(machine), settings_(settings) {
    const double start = seconds_now();
    const TrainOptions& options = settings.options;
    auto backend = make_backend(device_of(machine.code_path), threads(), options.precision,
                                machine.world.local_rank());
    learner_.objective = make_objective(arrays);
    load_weights(machine, settings, arrays, weights, std::move(backend), learner_);
    reserve_buffers(machine, settings, learner_);
    learner_.step = std::make_unique<TrainingStep>(
        *learner_.engine, *learner_.objective, machine.groups->data(),
        step_options(options, settings.config), *options.batch_size,
        stage_plan(machine, settings, learner_));
    building_ = seconds_now() - start;
  }

  double building() const { return building_; }

  // Seconds per token of training steps. The first step is slower, so it counts only if it takes
  // all of the time.
  double step_seconds(double most_seconds) {
    const SampleView& samples = learner_.objective->samples();
    const TrainOptions& options = settings_.options;
    const auto order = epoch_order(samples.size(), options.seed, 0, !options.no_shuffle);
    const int64_t steps = steps_per_epoch(samples.size(), *options.batch_size);
    const double start = seconds_now();
    double seconds = 0, tokens = 0;
    for (int64_t step = 0; step < steps; ++step) {
      check_stop();
      const IndexRange range = batch_range(samples.size(), *options.batch_size, step);
      const auto rows = std::span(order).subspan(size_t(range.begin), size_t(range.size()));
      const double began = seconds_now();
      const StepResult result = learner_.step->run(step, rows, 0);
      if (step == 1) seconds = tokens = 0;
      seconds += seconds_now() - began;
      tokens += double(result.tokens);
      if (!result.finite) break;  // the run reports it
      if (agreed(step > 0 && seconds_now() - start > most_seconds)) break;
      if (agreed(seconds_now() - start > 3 * most_seconds)) break;
    }
    return seconds / std::max(1.0, tokens);
  }

  // Seconds of an evaluation of all rows, on rank 0.
  double evaluation_seconds(Task* task, double most_seconds) {
    Engine& engine = *learner_.engine;
    BatchDispatcher dispatcher = learner_.replica_stages
                                     ? BatchDispatcher(engine, *learner_.replica_stages)
                                     : BatchDispatcher(engine, machine_.world);
    learner_.step->settle();
    const Uncounted evaluating(learner_.tensor_sum.get());
    if (!task) {
      dispatcher.serve();
      return 0;
    }
    const double start = seconds_now();
    double done = 0;
    const std::unique_ptr<Evaluator> evaluator = task->start_evaluation();
    const int64_t tokens =
        evaluation_tokens(engine.backend(), engine.config(), settings_.micro_batch_tokens,
                          engine.part().tensor_shards);
    const auto samples = dispatcher.evaluate(*evaluator, tokens, [&](double share) {
      done = share;
      return share == 0 || seconds_now() - start < most_seconds;
    });
    dispatcher.done();
    if (samples) {
      evaluator->metrics();
      done = 1;
    }
    return (seconds_now() - start) / std::max(done, 1e-6);
  }

 private:
  // Returns rank 0's answer on all ranks.
  bool agreed(bool answer) const {
    auto value = uint8_t(answer);
    machine_.world.broadcast(&value, sizeof value, 0);
    return value != 0;
  }
  void check_stop() const {
    agree_on_errors(machine_.world, [&] {
      const StopRequest request = context_.signals.request();
      if (request == StopRequest::none) return;
      throw Error(exit_code_of(request),
                  "stopped by a signal while the speed was measured; nothing is written");
    });
  }

  const Context& context_;
  const Machine& machine_;
  const Settings& settings_;
  Learner learner_;
  double building_ = 0;
};

// Seconds of a fit to the features of all training rows; computing the features not included.
double fit_seconds(const Settings& settings, int64_t samples, double token_seconds) {
  const EncoderConfig& config = settings.config;
  const auto width = double(config.hidden_size);
  const double speed = 24 * width * width * double(config.num_hidden_layers) / token_seconds;
  return kFitPasses * double(samples) * width * double(settings.head.outputs) /
         (kFitShareOfSpeed * speed);
}

}  // namespace

RunCosts measured_costs(const Context& context, const Machine& machine, const Settings& settings,
                        const TrainingArrays& arrays, Task* task, const WeightSource* encoder,
                        double most_seconds) {
  machine.world.note("measuring the speed", -1);
  const auto fitted = weights_to_start_with(settings, encoder, nullptr);
  Trial trial(context, machine, settings, arrays, fitted ? fitted.get() : encoder);
  const int64_t samples = arrays.samples.size();
  const auto tokens = double(arrays.samples.ids.size());
  RunCosts costs;
  const double token_seconds = trial.step_seconds(most_seconds);
  costs.step =
      token_seconds * tokens / double(steps_per_epoch(samples, *settings.options.batch_size));
  double inference = token_seconds / 3;
  if (settings.has_eval) costs.evaluation = trial.evaluation_seconds(task, most_seconds);
  if (!task) return costs;
  double rows = 0;
  if (const SampleSet* eval = task->eval_set()) {
    rows = double(eval->examples);
    inference = costs.evaluation / double(std::max<size_t>(1, eval->samples.ids.size()));
  }
  const auto layers = double(settings.config.num_hidden_layers);
  const auto bytes = 4 * double(ParameterTable(settings.config, settings.head).size());
  const double fit = inference * tokens + fit_seconds(settings, samples, inference);
  const double pooled = (layers + 1) / layers;  // one layer more
  (fits_head(settings.options) ? costs.fit : costs.other_fit) = fit;
  costs.checkpoint = 3 * bytes / kCheckpointBytes;
  costs.end = bytes / kExportBytes + kExit + rows * kSecondsARow +
              rows * double(settings.head.outputs) * kSecondsALogit;
  costs.quick = fit * pooled + costs.evaluation * pooled + costs.checkpoint + costs.end;
  costs.spent = trial.building();  // the run builds the learner again
  return costs;
}

}  // namespace finetune
