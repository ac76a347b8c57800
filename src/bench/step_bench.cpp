// bench step: runs and times training steps on synthetic samples.
#include "bench/step_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>

#include "bench/matmul_rate.h"
#include "bench/synthetic_task.h"
#include "comm/placement.h"
#include "core/files/files.h"
#include "core/process_stats.h"
#include "core/threads/parallel.h"
#include "data/plan.h"
#include "distributed/layout/layout.h"
#include "distributed/rank0_values.h"
#include "ops/cpu/machine_peaks.h"
#include "ops/device_peaks.h"
#include "tasks/objective.h"
#include "train/options/options.h"
#include "train/training_step.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

constexpr int64_t kWarmUpSteps = 2;
constexpr int64_t kLeastSteps = 3;
constexpr double kStepSeconds = 5;
constexpr int64_t kBatches = 64;  // different batches; later steps repeat them
constexpr double kLearningRate = 1e-5;

struct TimedSteps {
  std::vector<double> seconds;
  double tokens = 0;
};

// Measures the CPU's arithmetic rate between steps, for a fraction of their time and at least once.
// So steps and rate see the same CPU speed if it varies. All processes measure at the same time.
class RateBetweenSteps {
 public:
  RateBetweenSteps(Clock clock, DType precision, Communicator& comm)
      : clock_(clock), precision_(precision), comm_(comm) {}

  void after_step(double seconds) {
    since_ += seconds;
    bool due = since_ >= kSecondsBetween;
    comm_.broadcast(&due, sizeof due, 0);
    if (due) measure();
  }
  void after_last_step() {
    if (since_ > 0) measure();
  }
  std::optional<double> rate() const {
    if (done_.seconds == 0) return std::nullopt;
    return done_.flop / done_.seconds;
  }

 private:
  static constexpr double kSecondsBetween = 0.4, kPart = 0.25;
  // How long the yardstick's OpenMP threads may spin for new work.
  static constexpr auto kRest = std::chrono::milliseconds(10);

  void measure() {
    time_matmul(clock_, precision_);  // a warm-up: its threads return to their cores
    for (double seconds = 0; seconds < kPart * since_;) {
      const std::optional<TimedArithmetic> timed = time_matmul(clock_, precision_);
      if (!timed) break;
      done_.flop += timed->flop;
      done_.seconds += timed->seconds;
      seconds += timed->seconds;
    }
    since_ = 0;
    std::this_thread::sleep_for(kRest);
    comm_.barrier();
  }

  Clock clock_;
  DType precision_;
  Communicator& comm_;
  TimedArithmetic done_;
  double since_ = 0;
};

// Waits until `left` steps are in flight; returns the tokens of the finished ones.
int64_t finish_steps(TrainingStep& step, int64_t left) {
  int64_t tokens = 0;
  while (step.under_way() > left) {
    const StepResult outcome = step.finish();
    FINETUNE_CHECK(outcome.finite);
    tokens += outcome.tokens;
  }
  return tokens;
}

}  // namespace

void keep_best(MachinePeaks& peaks, const StepBenchOptions& options, DType precision) {
  const auto keep = [&](std::optional<double> matmul, double memory) {
    peaks.matmul = std::max(peaks.matmul, matmul);  // an empty optional is the smallest
    peaks.memory = std::max(peaks.memory, memory);
  };
  if (options.device == "cpu") {
    return keep(measure_matmul_peak(options.clock, precision), measure_memory_peak(options.clock));
  }
  // A separate backend, so that its memory is freed afterwards.
  const std::unique_ptr<Backend> backend =
      make_backend(options.device, threads(), precision == DType::bf16 ? "bf16" : "fp32");
  keep(measure_matmul_peak(*backend), measure_memory_peak(*backend));
}

TaskKind task_kind(const StepBenchOptions& options) {
  return *task_named(options.task.empty() ? task_of_lengths(options.lengths) : options.task);
}

int64_t resolved_batch_size(const StepBenchOptions& options) {
  if (options.batch_size > 0) return options.batch_size;
  return traits_of(task_kind(options)).head == HeadKind::token ? 8 : 32;
}

void check_clock(Clock clock, int64_t thread_count) {
  if (clock == Clock::wall || thread_count == 1) return;
  throw usage_error("--clock cpu adds up the time of all threads: it goes with --threads 1");
}

void check(const StepBenchOptions& o) {
  check_clock(o.clock, o.threads);
  if (o.clock == Clock::cpu && o.device == "cuda") {
    throw usage_error("--clock cpu measures processors: it does not go with --device cuda");
  }
}

EncoderConfig shape_config(const std::string& shape) {
  for (const char* name : {"tiny", "minilm", "base", "large"}) {
    if (shape == name && !directory_exists(shape, ExitCode::model)) return named_shape(shape);
  }
  const std::string path = model_path(shape);
  if (!directory_exists(path, ExitCode::model)) {
    throw usage_error("--shape ", in_quotes(shape),
                      ": must be tiny, minilm, base, large, a model directory or a model's id in "
                      "the Hugging Face cache");
  }
  const ModelDirectory directory = find_model(path, false);
  return parse_config(read_text_file(directory.config, ExitCode::model), directory.config);
}

StepBenchResult bench_step(const StepBenchOptions& options, Communicator& comm) {
  check(options);
  EncoderConfig config = shape_config(options.shape);
  check_tensor_shards(options.tensor_shards, 1, config.num_attention_heads,
                      config.intermediate_size);
  const LengthDistribution lengths = length_distribution(options.lengths, config.max_length());
  const TaskKind kind = task_kind(options);

  StepBenchResult result;
  result.shape = options.shape;
  result.lengths = options.lengths;
  result.clock = options.clock;
  result.task = name_of(kind);
  result.batch_size = resolved_batch_size(options);

  const int64_t count = result.batch_size * kBatches;
  std::unique_ptr<Task> task = make_synthetic_task(kind, lengths, count, config.vocab_size);
  auto profiling = std::make_unique<ProfilingBackend>(
      make_backend(options.device, options.threads > 0 ? options.threads : cores_for_process(comm),
                   options.precision, comm.local_rank()),
      options.clock);
  ProfilingBackend& profiler = *profiling;
  result.backend = profiler.description();
  result.device = options.device;
  result.precision = profiler.compute_type();
  result.threads = threads();
  result.processes = comm.size();
  result.virtual_shards = options.virtual_shards > 0 ? options.virtual_shards : comm.size();
  result.tensor_shards = options.tensor_shards;
  Engine engine(std::move(profiling), config, task->head(), comm,
                ModelPart::whole(config, options.tensor_shards));
  result.parameters = engine.table().count();
  engine.set_weights(
      [&](float* arena) { initialize(engine.table(), config.initializer_range, 1, arena); });

  StepOptions step_options;
  step_options.virtual_shards = result.virtual_shards;
  step_options.micro_batches = MicroBatching::of_tokens(
      options.micro_batch_tokens > 0
          ? options.micro_batch_tokens
          : auto_micro_batch_tokens(config, lengths.longest,
                                    least_device_bytes(comm, engine.backend())));
  std::unique_ptr<Objective> objective = make_objective(task->training_arrays());
  const bool asynchronous = !profiler.uses_host_memory();
  profiler.set_recording(false);  // a device needs more memory for replay than for recording
  const BatchSize limits = reserved_size(
      engine.backend(),
      micro_batch_limits(objective->samples(), step_options.micro_batches, result.batch_size));
  engine.reserve(limits, {}, options.recompute);
  objective->reserve(engine.backend(), limits.sequences);
  const LayoutPeers peers(engine.backend(), comm, 0);
  StagePlan plan;
  plan.replicas = peers.along(Axis::data);
  TrainingStep step(engine, *objective, comm, step_options, result.batch_size, std::move(plan));

  std::vector<uint32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  int64_t done = 0;
  int64_t place = 0;  // index of the next batch
  auto begin_step = [&] {
    const IndexRange range = batch_range(count, result.batch_size, place++ % kBatches);
    step.begin(done++, std::span(order).subspan(size_t(range.begin), size_t(range.size())),
               kLearningRate);
  };

  // On a CPU the timed steps are recorded; on a device the time is measured first.
  std::optional<RateBetweenSteps> rate;
  if (!asynchronous) rate.emplace(options.clock, result.precision, comm);
  const auto measure_peaks = [&] {
    if (asynchronous) return keep_best(result.peaks, options, result.precision);
    result.peaks.memory = std::max(result.peaks.memory, measure_memory_peak(options.clock));
  };
  measure_peaks();
  profiler.set_recording(!asynchronous);
  for (int64_t i = 0; i < kWarmUpSteps; ++i) {
    begin_step();
    finish_steps(step, 0);
  }
  step.settle();  // deferred work of these steps must not count for the timed steps
  profiler.clear();
  const int64_t first_place = place;
  const double communication_before = step.communication_seconds();
  // A step's time ends when its result is known while `under_way` later steps are in flight.
  auto run_steps = [&](int64_t most, int64_t under_way) {
    TimedSteps timed;
    double wall_seconds = 0;
    auto enough = [&] {
      const int64_t steps = int64_t(timed.seconds.size());
      if (most > 0 && steps >= most) return true;
      if (options.steps > 0) return false;
      bool is_enough = steps >= kLeastSteps && wall_seconds >= kStepSeconds;
      comm.broadcast(&is_enough, sizeof is_enough, 0);
      return is_enough;
    };
    engine.backend().synchronize();
    for (int64_t i = 0; i < under_way; ++i) begin_step();
    while (!enough()) {
      const double step_start = seconds_now(options.clock), wall_start = seconds_now();
      begin_step();
      timed.tokens += double(finish_steps(step, under_way));
      timed.seconds.push_back(seconds_now(options.clock) - step_start);
      wall_seconds += seconds_now() - wall_start;
      if (rate) rate->after_step(timed.seconds.back());
    }
    if (under_way > 0) {  // more steps than requested
      finish_steps(step, 0);
      engine.backend().synchronize();
    }
    const double settle_start = seconds_now(options.clock);
    step.settle();  // deferred work counts for the last step
    engine.backend().synchronize();
    timed.seconds.back() += seconds_now(options.clock) - settle_start;
    if (rate) rate->after_last_step();
    return timed;
  };
  TimedSteps timed = run_steps(options.steps, step.most_under_way());
  result.communication_seconds = step.communication_seconds() - communication_before;
  result.samples = double(timed.seconds.size()) * double(result.batch_size);
  result.tokens = timed.tokens;
  result.step_seconds = timed.seconds;
  result.peak_memory_mb = resident_memory_mb();  // no memory is released between steps
  result.device_peak_memory_mb = double(profiler.device_memory().peak) / (1 << 20);
  if (asynchronous) {
    place = first_place;
    profiler.set_recording(true);
    timed = run_steps(int64_t(timed.seconds.size()), 0);
  }
  result.profile = profiler.profile();
  result.profiled_steps = double(timed.seconds.size());
  result.profiled_seconds = std::accumulate(timed.seconds.begin(), timed.seconds.end(), 0.0);
  result.profiled_tokens = timed.tokens;
  measure_peaks();
  if (rate) result.peaks.matmul = rate->rate();
  return result;
}

}  // namespace finetune
