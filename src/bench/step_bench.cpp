#include "bench/step_bench.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "bench/synthetic_task.h"
#include "comm/placement.h"
#include "core/files.h"
#include "core/parallel.h"
#include "data/plan.h"
#include "ops/cpu/machine_peaks.h"
#include "tasks/objective.h"
#include "train/process_stats.h"
#include "train/training_step.h"

namespace finetune {
namespace {

constexpr int64_t kWarmUpSteps = 2;
constexpr int64_t kLeastSteps = 3;
constexpr double kSeconds = 5;
constexpr int64_t kBatches = 64;  // different ones; later steps begin again
constexpr double kLearningRate = 1e-5;

}  // namespace

void keep_best(MachinePeaks& peaks, Clock clock, DType precision) {
  peaks.matmul = std::max(peaks.matmul, measure_matmul_peak(clock, precision));
  peaks.memory = std::max(peaks.memory, measure_memory_peak(clock));
}

TaskKind task_kind(const StepBenchOptions& options) {
  if (options.task.empty()) {
    return options.lengths == "squad" ? TaskKind::qa : TaskKind::classification;
  }
  return options.task == "qa" ? TaskKind::qa : TaskKind::classification;
}

int64_t resolved_batch_size(const StepBenchOptions& options) {
  if (options.batch_size > 0) return options.batch_size;
  return task_kind(options) == TaskKind::qa ? 8 : 32;
}

void check_clock(Clock clock, int64_t thread_count) {
  if (clock == Clock::wall || thread_count == 1) return;
  throw usage_error("--clock cpu adds up the time of all threads: it goes with --threads 1");
}

void check(const StepBenchOptions& o) {
  if (o.batch_size < 0) throw usage_error("--batch-size ", o.batch_size, " is negative");
  if (o.steps < 0) throw usage_error("--steps ", o.steps, " is negative");
  if (o.threads < 0) throw usage_error("--threads ", o.threads, " is negative");
  check_clock(o.clock, o.threads);
  if (o.micro_batch_tokens < 0) {
    throw usage_error("--micro-batch-tokens ", o.micro_batch_tokens, " is negative");
  }
}

BertConfig shape_config(const std::string& shape) {
  if (!std::filesystem::is_directory(shape)) {
    for (const char* name : {"tiny", "minilm", "base", "large"}) {
      if (shape == name) return named_shape(shape);
    }
    throw usage_error("--shape ", in_quotes(shape),
                      ": must be tiny, minilm, base, large or a model directory");
  }
  const ModelDirectory directory = find_model(shape, false);
  return parse_config(read_text_file(directory.config, ExitCode::model), directory.config);
}

StepBenchResult bench_step(const StepBenchOptions& options, Communicator& comm) {
  check(options);
  BertConfig config = shape_config(options.shape);
  const LengthDistribution lengths =
      length_distribution(options.lengths, config.max_position_embeddings);
  const TaskKind kind = task_kind(options);

  StepBenchResult result;
  result.shape = options.shape;
  result.lengths = options.lengths;
  result.clock = options.clock;
  result.task = kind == TaskKind::qa ? "qa" : "classification";
  result.batch_size = resolved_batch_size(options);

  const int64_t count = result.batch_size * kBatches;
  std::unique_ptr<Task> task = make_synthetic_task(kind, lengths, count, config.vocab_size);
  auto profiling = std::make_unique<ProfilingBackend>(
      make_backend("cpu", options.threads > 0 ? options.threads : cores_for_process(comm),
                   options.precision),
      options.clock);
  ProfilingBackend& profiler = *profiling;
  result.backend = profiler.description();
  result.precision = profiler.compute_type();
  result.threads = threads();
  result.processes = comm.size();
  result.virtual_shards = options.virtual_shards > 0 ? options.virtual_shards : comm.size();
  Engine engine(std::move(profiling), config, task->head(), comm);
  result.parameters = engine.table().count();
  engine.set_weights(
      [&](float* arena) { initialize(engine.table(), config.initializer_range, 1, arena); });

  StepOptions step_options;
  step_options.virtual_shards = result.virtual_shards;
  step_options.micro_batch_tokens = options.micro_batch_tokens > 0
                                        ? options.micro_batch_tokens
                                        : auto_micro_batch_tokens(config, lengths.longest);
  std::unique_ptr<Objective> objective = make_objective(task->training_arrays());
  const MicroBatchLimits limits =
      micro_batch_limits(objective->samples(), step_options.micro_batch_tokens, result.batch_size);
  engine.reserve(limits, {}, options.recompute);
  objective->reserve(engine.backend(), limits.sequences);
  TrainingStep step(engine, *objective, comm, step_options, result.batch_size);

  std::vector<uint32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  int64_t done = 0;
  auto run_step = [&] {
    const IndexRange range = batch_range(count, result.batch_size, done % kBatches);
    const StepResult outcome = step.run(
        done, std::span(order).subspan(size_t(range.begin), size_t(range.size())), kLearningRate);
    FINETUNE_CHECK(outcome.finite);
    ++done;
    return outcome.tokens;
  };

  keep_best(result.peaks, options.clock, result.precision);
  for (int64_t i = 0; i < kWarmUpSteps; ++i) run_step();
  step.settle();  // what these steps have put off is not the timed steps' work
  profiler.clear();
  const double start = seconds_now();
  const double communication_before = step.communication_seconds();
  auto enough = [&] {
    const int64_t timed = int64_t(result.step_seconds.size());
    if (options.steps > 0) return timed >= options.steps;
    bool is_enough = timed >= kLeastSteps && seconds_now() - start >= kSeconds;
    comm.broadcast(&is_enough, sizeof is_enough, 0);
    return is_enough;
  };
  while (!enough()) {
    const double step_start = seconds_now(options.clock);
    result.tokens += double(run_step());
    result.step_seconds.push_back(seconds_now(options.clock) - step_start);
    result.samples += double(result.batch_size);
  }
  const double settle_start = seconds_now(options.clock);
  step.settle();  // what they have put off is; the last one bears it
  result.step_seconds.back() += seconds_now(options.clock) - settle_start;
  result.communication_seconds = step.communication_seconds() - communication_before;
  result.profile = profiler.profile();
  result.peak_memory_mb = peak_memory_mb();
  keep_best(result.peaks, options.clock, result.precision);
  return result;
}

}  // namespace finetune
