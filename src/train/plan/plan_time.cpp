// Times some steps and an evaluation, and extrapolates to the run.
#include "train/plan/plan_time.h"

#include <algorithm>

#include "core/clock.h"
#include "core/process_stats.h"
#include "data/plan.h"
#include "inference/batch_dispatch.h"
#include "train/run/run_setup.h"
#include "train/training_step.h"

namespace finetune {
namespace {

constexpr double kSeconds = 2;    // for measuring steps, at most
constexpr double kProbe = 0.25;   // seconds of a probe of at least one step
constexpr size_t kProbes = 3;     // the least number of probes
constexpr double kSteady = 0.04;  // stop when the last probes differ by less than this share
constexpr double kLongStep = 1;   // seconds; the time of a longer step is extrapolated
constexpr double kEvaluationSeconds = 1;
constexpr double kLearningRate = 1e-6;  // small, so that random weights do not diverge

// Times steps on samples of the run's first epoch, since the buffers are for its micro-batches.
class Stopwatch {
 public:
  Stopwatch(TrainingStep& step, const TimedRun& run, int64_t steps)
      : step_(step),
        batch_size_(*run.options.batch_size),
        order_(first_epoch(run.task.train_set().samples, run.options, steps)) {}

  struct Time {
    double tokens = 0, seconds = 0;
  };
  // Times a step with the first `count` samples of the next batch.
  Time step(int64_t count) {
    const int64_t all = int64_t(order_.size());
    const IndexRange range =
        batch_range(all, batch_size_, done_ % steps_per_epoch(all, batch_size_));
    const double start = seconds_now();
    const StepResult result = step_.run(
        done_++,
        std::span(order_).subspan(size_t(range.begin), size_t(std::min(count, range.size()))),
        kLearningRate);
    return {double(result.tokens), seconds_now() - start};
  }

 private:
  TrainingStep& step_;
  int64_t batch_size_;
  std::vector<uint32_t> order_;
  int64_t done_ = 0;
};

// The result of some consecutive steps.
struct Probe {
  double seconds = 0;  // of one step
  double waited = 0;   // share of the threads' time that they waited for a processor
};

Probe probe_of(Stopwatch::Time sum, int64_t steps, const ProcessorTime& before) {
  const ProcessorTime now = processor_time();
  const double running = now.running - before.running, waiting = now.waiting - before.waiting;
  return {sum.seconds / double(steps), waiting > 0 ? waiting / (running + waiting) : 0};
}

// Summarizes the times of steps; evaluations are not in it.
TimeForecast summary_of(std::vector<Probe> probes) {
  TimeForecast time;
  std::sort(probes.begin(), probes.end(),
            [](const Probe& a, const Probe& b) { return a.seconds < b.seconds; });
  time.step = probes[probes.size() / 2].seconds;
  time.step_low = time.step;
  time.step_high = probes.back().seconds;
  for (const Probe& probe : probes) {
    time.step_low = std::min(time.step_low, probe.seconds * (1 - probe.waited));
    time.waited += probe.waited / double(probes.size());
  }
  return time;
}

bool is_steady(const std::vector<Probe>& probes) {
  if (probes.size() < kProbes) return false;
  const auto [least, most] =
      std::minmax_element(probes.end() - int64_t(kProbes), probes.end(),
                          [](const Probe& a, const Probe& b) { return a.seconds < b.seconds; });
  return most->seconds <= (1 + kSteady) * least->seconds;
}

// The times of a step with `tokens` tokens. The time of a long step is extrapolated from smaller
// steps: a fixed cost, and a cost per token.
TimeForecast step_times(Stopwatch& watch, int64_t batch_size, int64_t sequences, double tokens) {
  watch.step(1);  // warms up
  const Stopwatch::Time small = watch.step(1);
  Stopwatch::Time part = watch.step(sequences);
  auto extrapolated = [&](const Stopwatch::Time& large) {
    const double more = std::max(1.0, large.tokens - small.tokens);
    const double per_token = std::max(0.0, large.seconds - small.seconds) / more;
    return large.seconds + (tokens - large.tokens) * per_token;
  };
  const int64_t count = extrapolated(part) > kLongStep ? sequences : batch_size;
  std::vector<Probe> probes;
  const double start = seconds_now();
  while (probes.size() < kProbes || (!is_steady(probes) && seconds_now() - start < kSeconds)) {
    const ProcessorTime before = processor_time();
    Stopwatch::Time sum;
    int64_t steps = 0;
    for (; steps == 0 || sum.seconds < kProbe; ++steps) {
      const Stopwatch::Time time = watch.step(count);
      sum.tokens += time.tokens;
      sum.seconds += time.seconds;
    }
    Probe probe = probe_of(sum, steps, before);
    probe.seconds = extrapolated({sum.tokens / double(steps), probe.seconds});
    probes.push_back(probe);
  }
  return summary_of(std::move(probes));
}

double evaluation_seconds(Engine& engine, Communicator& comm, Task& task,
                          int64_t micro_batch_tokens) {
  BatchDispatcher dispatcher(engine, comm);
  const std::unique_ptr<Evaluator> evaluator = task.start_evaluation();
  const double start = seconds_now();
  double share = 0;
  const auto whole = dispatcher.evaluate(*evaluator, micro_batch_tokens, [&](double done) {
    share = done;
    return done == 0 || seconds_now() - start < kEvaluationSeconds;
  });
  dispatcher.done();
  return (seconds_now() - start) / (whole ? 1 : share);
}

}  // namespace

TimeForecast measure_time_of(TimedRun run, const Workload& work) {
  const std::unique_ptr<Communicator> comm = make_solo_communicator();
  Engine engine(std::move(run.backend), run.config, run.task.head(), *comm,
                whole_model(run.options, run.config));
  const std::unique_ptr<Objective> objective = make_objective(run.task.training_arrays());
  engine.set_weights(
      [&](float* arena) { initialize(engine.table(), run.config.initializer_range, 1, arena); });
  // A part of a batch is cut into smaller shards than the run's, which sets the buffers' sizes.
  const int64_t shard = part(*run.options.batch_size, *run.options.virtual_shards, 0).size();
  const BatchSize largest =
      reserved_size(engine.backend(),
                    micro_batch_limits(objective->samples(), micro_batching(run.options), shard));
  engine.reserve(largest, work.evaluation, run.options.recompute, 1,
                 run.options.offload_activations.value_or(0));
  objective->reserve(engine.backend(), largest.sequences);
  TimeForecast time;
  {
    TrainingStep step(engine, *objective, *comm, step_options(run.options, run.config),
                      *run.options.batch_size);
    Stopwatch watch(step, run, work.steps);
    time = step_times(watch, *run.options.batch_size, work.training.sequences, work.step_tokens);
  }
  if (run.task.eval_set()) {
    const int64_t tokens = evaluation_tokens(engine.backend(), run.config, run.micro_batch_tokens,
                                             engine.part().tensor_shards);
    time.evaluation = evaluation_seconds(engine, *comm, run.task, tokens);
  }
  return time;
}

}  // namespace finetune
