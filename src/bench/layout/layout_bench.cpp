// bench layout: runs training steps without files, and measures their traffic, memory and waits.
#include "bench/layout/layout_bench.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>

#include "bench/lengths.h"
#include "bench/step_bench.h"
#include "bench/synthetic_task.h"
#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/process_stats.h"
#include "core/threads/parallel.h"
#include "distributed/pipeline/pipeline_simulation.h"
#include "distributed/rank0_values.h"
#include "train/layout/stages.h"
#include "train/options/options.h"
#include "train/plan/memory_forecast.h"
#include "train/prepare/learner.h"
#include "train/recipe/recipe.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

int64_t bytes_of_mb(double mb) {
  return int64_t(mb * 1024 * 1024);
}

// Processor time of a pass, summed over the recorded steps.
struct PassTime {
  int32_t backward = 0, chunk = 0, micro = 0;
  double seconds = 0;
};

class LayoutBench {
 public:
  LayoutBench(const LayoutBenchOptions& options, Communicator& comm) : o_(options), comm_(comm) {}

  LayoutBenchResult run();

 private:
  void check();
  void choose();
  void make_samples();
  void make_model();
  void run_steps();
  void take_memory();
  void simulate_passes();
  std::vector<bool> words() const;

  static constexpr double kLearningRate = 1e-5;
  const LayoutBenchOptions& o_;
  Communicator& comm_;
  Settings settings_;
  std::optional<Machine> machine_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Backend> backend_;
  Learner learner_;
  std::vector<uint32_t> batch_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, double> passes_;
  bool recording_ = false;
  double sums_before_ = 0;
  int64_t program_ = 0;
  LayoutBenchResult result_;
};

void LayoutBench::check() {
  agree_on_errors(comm_, [&] {
    TrainOptions given = o_.train;
    given.recipe = "hf";  // other recipes choose values by the data, and there is none
    given = with_fixed_recipe(given);
    validate_values(given);
    validate_pipeline(given);
    settings_.options = given;
    settings_.options.device = "cpu";
    settings_.options.max_length = o_.length;
    settings_.config = shape_config(o_.shape);
    stages_of(settings_.options, settings_.config, HeadKind::sequence);
  });
}

// Chooses the machine settings and everything that follows from the layout.
void LayoutBench::choose() {
  TrainOptions& o = settings_.options;
  machine_.emplace(Machine{comm_, make_groups(comm_, o), "", {}});
  o.precision = agreed_precision(comm_, o.device, o.precision);
  backend_ = make_backend(o.device, o.threads.value_or(cores_for_process(comm_)), o.precision,
                          comm_.local_rank());
  take_layout_defaults(o, machine_->layout());
  if (!o.micro_batches && !o.micro_batch_tokens) {
    o.micro_batch_tokens = auto_micro_batch_tokens(settings_.config, o_.length, 0);
  }
}

void LayoutBench::make_samples() {
  TrainingArrays arrays;
  agree_on_errors(comm_, [&] {
    const EncoderConfig& config = settings_.config;
    task_ = make_synthetic_task(*task_named(o_.task),
                                length_distribution(concat(o_.length), config.max_length()),
                                *settings_.options.batch_size, config.vocab_size);
    arrays = task_->training_arrays();
  });
  learner_.objective = make_objective(arrays);
  settings_.head = arrays.head;
  agree_on_errors(comm_, [&] { plan_micro_batches(settings_, arrays.samples); });
  batch_.resize(size_t(*settings_.options.batch_size));
  std::iota(batch_.begin(), batch_.end(), 0u);
}

void LayoutBench::make_model() {
  const EncoderConfig& config = settings_.config;
  Workload work;
  work.training = settings_.training;
  probe_memory(*backend_, config, settings_.head, *settings_.options.tensor_shards, work,
               settings_.options.recompute);
  comm_.barrier();
  program_ = bytes_of_mb(proportional_memory_mb());
  comm_.barrier();
  learner_.tensor_sum = make_tensor_sum(*machine_, settings_, *backend_, nullptr);
  learner_.engine = std::make_unique<Engine>(
      std::move(backend_), config, settings_.head, machine_->groups->data(),
      own_part(*machine_, settings_), learner_.tensor_sum.get());
  if (machine_->groups->data().local_rank() == 0) {
    learner_.engine->set_weights([&](float* arena) {
      initialize(learner_.engine->table(), config.initializer_range, 1, arena);
    });
  }
  learner_.engine->share_weights(machine_->groups->data());
  comm_.barrier();
  reserve_buffers(*machine_, settings_, learner_);
  StagePlan plan = stage_plan(*machine_, settings_, learner_);
  plan.record = [this](const PipelineAction& action, double seconds) {
    const double sums = learner_.tensor_sum ? learner_.tensor_sum->cpu_seconds() : 0;
    if (recording_) {
      const bool backward = action.kind == PipelineAction::Kind::backward;
      passes_[{backward, action.chunk, action.micro}] += seconds - (sums - sums_before_);
    }
    sums_before_ = sums;
  };
  learner_.step = std::make_unique<TrainingStep>(
      *learner_.engine, *learner_.objective, machine_->groups->data(),
      step_options(settings_.options, config), *settings_.options.batch_size, std::move(plan));
}

void LayoutBench::run_steps() {
  const auto step = [&](int64_t number) {
    if (!learner_.step->run(number, batch_, kLearningRate).finite) {
      throw internal_error("a step on random weights is not finite");
    }
  };
  step(0);
  const StepBytes before = bytes_of_steps(comm_, learner_);
  recording_ = true;
  for (int64_t i = 1; i <= o_.steps; ++i) step(i);
  recording_ = false;
  const StepBytes after = bytes_of_steps(comm_, learner_);
  const auto of_a_step = [&](int64_t first, int64_t last) {
    result_.counts_divide = result_.counts_divide && (last - first) % o_.steps == 0;
    return (last - first) / o_.steps;
  };
  result_.counted = {of_a_step(before.tensor, after.tensor),
                     of_a_step(before.pipeline, after.pipeline),
                     of_a_step(before.data, after.data)};
}

std::vector<bool> LayoutBench::words() const {
  std::vector<bool> found(size_t(settings_.config.vocab_size), false);
  for (int32_t id : learner_.objective->samples().ids) found[size_t(id)] = true;
  return found;
}

void LayoutBench::take_memory() {
  const Communicator& replicas = machine_->groups->data();
  const Engine& engine = *learner_.engine;
  Workload work;
  work.training = settings_.training;
  const int64_t first = replicas.first_rank(replicas.host());
  RunShape shape{.table = engine.table(),
                 .encoder = learner_.engine->encoder(),
                 .facts = {.words = words()},
                 .shards = *settings_.options.virtual_shards,
                 .processes = replicas.size(),
                 .slots = engine.slots(),
                 .here = IndexRange{first, first + replicas.local_size()},
                 .checkpoints = false};
  const MemoryForecast forecast = forecast_memory(shape, work, settings_.options.recompute);
  ProcessMemory own;
  own.rank = comm_.rank();
  own.host = comm_.host();
  own.at = machine_->groups->place();
  own.parameters = engine.table().count();
  own.weights = forecast.weights / replicas.local_size();
  own.moments = forecast.optimizer / replicas.local_size();
  own.gradients = forecast.shared / replicas.local_size() - own.weights - own.moments;
  own.activations = forecast.activations;
  own.program = program_;
  own.formula = stage_memory(layout_run(*machine_, settings_), own.at.p).total();
  comm_.barrier();
  own.measured = bytes_of_mb(proportional_memory_mb());
  std::vector<int64_t> measured(size_t(replicas.size()));
  machine_->groups->data().all_gather(&own.measured, sizeof own.measured, measured.data());
  // Chance decides which replica touches a shared page, so each gets their mean.
  const auto local = measured.begin() + first;
  own.measured =
      std::accumulate(local, local + replicas.local_size(), int64_t{0}) / replicas.local_size();
  result_.memory.resize(size_t(comm_.size()));
  comm_.all_gather(&own, sizeof own, result_.memory.data());
}

// Simulates the passes of the first replica's first tensor ranks, stage by stage.
void LayoutBench::simulate_passes() {
  std::vector<PassTime> own;
  const Coordinates at = machine_->groups->place();
  if (at.d == 0 && at.t == 0) {
    for (const auto& [pass, seconds] : passes_) {
      own.push_back({std::get<0>(pass), std::get<1>(pass), std::get<2>(pass), seconds});
    }
  }
  std::vector<uint8_t> bytes(own.size() * sizeof(PassTime));
  if (!own.empty()) std::memcpy(bytes.data(), own.data(), bytes.size());
  const std::vector<std::vector<uint8_t>> all = comm_.gather(bytes);
  if (comm_.rank() != 0) return;
  const Layout& layout = machine_->layout();
  using Key = std::tuple<int, int32_t, int32_t, int32_t>;
  std::map<Key, double> seconds;
  for (int stage = 0; stage < layout.pp(); ++stage) {
    const auto& of = all[size_t(layout.rank_of({0, stage, 0}))];
    std::vector<PassTime> passes(of.size() / sizeof(PassTime));
    if (!passes.empty()) std::memcpy(passes.data(), of.data(), of.size());
    for (const PassTime& p : passes) seconds[{stage, p.backward, p.chunk, p.micro}] = p.seconds;
  }
  // A shard may have fewer samples than micro-batches.
  PipelineShape shape = result_.run.pipeline();
  shape.micro_batches = 0;
  while (seconds.contains({0, 0, 0, shape.micro_batches})) ++shape.micro_batches;
  const PipelineTimes times = simulate(shape, [&](int stage, const PipelineAction& action) {
    using enum PipelineAction::Kind;
    if (action.kind != forward && action.kind != backward) return 0.0;
    return seconds.at({stage, action.kind == backward, action.chunk, action.micro});
  });
  result_.recorded_bubble = times.bubble;
}

LayoutBenchResult LayoutBench::run() {
  check();
  choose();
  make_samples();
  make_model();
  run_steps();
  take_memory();
  result_.shape = o_.shape;
  result_.backend = learner_.engine->backend().description();
  result_.hosts = host_names(comm_);
  result_.steps = o_.steps;
  result_.threads = threads();
  result_.run = layout_run(*machine_, settings_);
  const std::vector<bool> found = words();
  result_.run.word_rows = std::count(found.begin(), found.end(), true);
  result_.formula = step_bytes(result_.run);
  result_.forecast_bubble = forecast_bubble(result_.run);
  result_.formula_bubble = bubble(result_.run.layout.pp(), result_.run.split.chunks_of_a_stage(),
                                  result_.run.replica_micro_batches());
  simulate_passes();
  return std::move(result_);
}

}  // namespace

LayoutBenchResult bench_layout(const LayoutBenchOptions& options, Communicator& comm) {
  return LayoutBench(options, comm).run();
}

}  // namespace finetune
