// Times some steps and an evaluation, and extrapolates to the run.
#include "train/plan/plan_time.h"

#include <algorithm>

#include "core/clock.h"
#include "data/plan.h"
#include "inference/batch_dispatch.h"
#include "train/run/run_setup.h"
#include "train/training_step.h"

namespace finetune {
namespace {

constexpr double kSeconds = 2;   // of measuring steps,
constexpr double kLongStep = 1;  // whole ones unless they take longer than this
constexpr double kEvaluationSeconds = 1;
constexpr double kLearningRate = 1e-6;  // random weights must not diverge

// Runs steps on the samples that the run's first epoch has: buffers are for their micro-batches.
class Stopwatch {
 public:
  Stopwatch(TrainingStep& step, const TimedRun& run, int64_t steps)
      : step_(step),
        batch_size_(*run.options.batch_size),
        order_(first_epoch(run.task.train_set().samples, run.options, steps)) {}

  struct Time {
    double tokens = 0, seconds = 0;
  };
  // Of a step with the first `count` samples of the next batch.
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

// Seconds of a step with `tokens` tokens. A step that takes long is put together from small ones:
// what every step costs, and what a token adds.
double step_seconds(Stopwatch& watch, int64_t batch_size, int64_t sequences, double tokens) {
  watch.step(1);  // warms up
  const Stopwatch::Time small = watch.step(1);
  Stopwatch::Time part = watch.step(sequences);
  auto extrapolated = [&](const Stopwatch::Time& large) {
    const double more = std::max(1.0, large.tokens - small.tokens);
    const double per_token = std::max(0.0, large.seconds - small.seconds) / more;
    return large.seconds + (tokens - large.tokens) * per_token;
  };
  const int64_t count = extrapolated(part) > kLongStep ? sequences : batch_size;
  Stopwatch::Time sum;
  int64_t steps = 0;
  for (const double start = seconds_now(); steps < 2 || seconds_now() - start < kSeconds; ++steps) {
    const Stopwatch::Time time = watch.step(count);
    sum.tokens += time.tokens;
    sum.seconds += time.seconds;
  }
  return extrapolated({sum.tokens / double(steps), sum.seconds / double(steps)});
}

double evaluation_seconds(Engine& engine, Communicator& comm, Task& task,
                          int64_t micro_batch_tokens) {
  BatchDispatcher dispatcher(engine, comm);
  const std::unique_ptr<Evaluation> evaluation = task.start_evaluation();
  const double start = seconds_now();
  double share = 0;
  const bool whole =
      dispatcher.evaluate(*task.eval_set(), *evaluation, micro_batch_tokens, [&](double done) {
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
  // Steps with a part of a batch cut it into other shards than the run's.
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
    time.step =
        step_seconds(watch, *run.options.batch_size, work.training.sequences, work.step_tokens);
  }
  if (run.task.eval_set()) {
    const int64_t tokens = evaluation_tokens(engine.backend(), run.config, run.micro_batch_tokens,
                                             engine.part().tensor_shards);
    time.evaluation = evaluation_seconds(engine, *comm, run.task, tokens);
  }
  return time;
}

}  // namespace finetune
