#include "train/plan.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/parallel.h"
#include "data/packing.h"
#include "data/plan.h"
#include "tasks/registry.h"
#include "train/duration.h"
#include "train/plan_time.h"
#include "train/process_stats.h"
#include "train/resume.h"
#include "train/run_setup.h"
#include "train/tree_sum.h"

namespace finetune {
namespace {

constexpr int64_t kFloat = sizeof(float);
// What comes of the program and its libraries after it has started, measured: pages of kernels,
// tokenizer, HDF5 and libcrypto, and state of theirs and of the threads; more of both where MPI
// connects several processes.
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLaterPages = 13 * kMiB / 2, kLaterState = 2 * kMiB;
constexpr int64_t kMpiPages = 3 * kMiB, kMpiState = 7 * kMiB;

int64_t bytes_of_mb(double mb) {
  return int64_t(mb * 1024 * 1024);
}

// What the kernel gives at once where memory is touched that asks for large pages, as arenas do:
// those of one process, or the ones that processes share.
int64_t arena_page(bool shared) {
  std::ifstream file(shared ? "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
                            : "/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  const bool small = text.empty() || text.find("[never]") != std::string::npos ||
                     text.find("[deny]") != std::string::npos;
  return small ? 4096 : 2 * kMiB;
}

// What a training run has ready before it allocates.
struct Prepared {
  TrainOptions options;
  ModelFiles model;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Task> task;
  int lowest_layer = 0;
  Schedule schedule;
  int64_t weight_file_bytes = 0;
  // Resident, measured; of the program's bytes those that are pages of files.
  int64_t program_bytes = 0, program_pages = 0, data_bytes = 0;
};

Prepared prepare(const TrainOptions& given) {
  Prepared p;
  TrainOptions& o = p.options;
  o = given;
  if (o.output.empty()) o.output = "plan";  // not needed here
  validate(o);
  if (!o.time_limit.empty()) parse_duration(o.time_limit, "--time-limit");
  parse_duration(o.comm_timeout, "--comm-timeout");
  for (const std::string& text : o.assertions) parse_assertion(text);
  p.backend = make_backend(o.device, o.threads.value_or(0), o.precision);
  p.program_bytes = bytes_of_mb(resident_memory_mb());
  p.program_pages = bytes_of_mb(resident_file_mb());
  p.model = open_model(o.model, true);
  p.lowest_layer = lowest_trained_layer(o, p.model.config);
  auto source = open_weights(p.model.directory.weights);
  p.task = read_task(o, p.model, *source);
  read_assertions(o, metrics_of_run(*p.task));
  checked_best_metric(o, *p.task);
  p.schedule = make_schedule(o, p.task->train_set().samples.size());
  for (const auto& file : source->files()) {
    std::error_code ignored;
    p.weight_file_bytes += int64_t(std::filesystem::file_size(file, ignored));
  }
  p.data_bytes = bytes_of_mb(resident_memory_mb()) - p.program_bytes;
  return p;
}

// Elements of a gradient arena that training writes, in whole pages: parameters that are not
// frozen, of the word embedding the rows that occur.
int64_t gradient_bytes(const Prepared& p, const ParameterTable& table, int64_t steps,
                       int64_t page) {
  std::vector<bool> pages(size_t(table.size() * kFloat / page + 1), false);
  auto touch = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kFloat / page; i <= (end * kFloat - 1) / page; ++i) {
      pages[size_t(i)] = true;
    }
  };
  for (const Parameter& parameter : table.parameters()) {
    if (parameter.layer < p.lowest_layer) continue;
    if (&parameter != &table.parameters().back()) {
      touch(parameter.offset, parameter.offset + parameter.size());
      continue;
    }
    const int64_t rows = parameter.shape[0], cols = parameter.shape[1];
    const std::vector<bool> touched =
        rows_touched(p.task->train_set().samples, p.options, steps, rows);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = parameter.offset + row * cols;
      if (touched[size_t(row)]) touch(begin, begin + cols);
    }
  }
  return std::min(std::count(pages.begin(), pages.end(), true) * page, table.size() * kFloat);
}

// m and v of what is trained: every checkpoint brings all rows up to date.
int64_t optimizer_bytes(const Prepared& p, const ParameterTable& table) {
  int64_t elements = 0;
  for (const Parameter& parameter : table.parameters()) {
    if (parameter.layer >= p.lowest_layer) elements += parameter.size();
  }
  return 2 * elements * kFloat;
}

// What an evaluation holds when all samples are in: one is filled with logits that are all zero.
int64_t evaluation_bytes(Task& task, Head head) {
  if (!task.eval_set()) return 0;
  auto allocated = [] {
    const struct mallinfo2 info = mallinfo2();
    return int64_t(info.uordblks + info.hblkhd);
  };
  const int64_t before = allocated();
  auto evaluation = task.start_evaluation();
  const TokenizedSamples& samples = task.eval_set()->samples;
  PackedBatch batch;
  std::vector<float> logits;
  for (int64_t i = 0; i < samples.size(); ++i) {
    const uint32_t index = uint32_t(i);
    pack(samples, {&index, 1}, 0, batch);
    logits.assign(size_t((head.kind == HeadKind::token ? batch.tokens() : 1) * head.outputs), 0);
    evaluation->add(batch, logits.data());
  }
  return std::max<int64_t>(0, allocated() - before);
}

// Ids, types, positions, ... of a micro-batch, as packed, and twice as uploaded.
int64_t batch_bytes(const MicroBatchLimits& size) {
  return 3 * (5 * size.tokens + 4 * size.sequences) * int64_t(sizeof(int32_t));
}

MicroBatchLimits larger(const MicroBatchLimits& a, const MicroBatchLimits& b) {
  return {std::max(a.tokens, b.tokens), std::max(a.sequences, b.sequences)};
}

// The formula: parts that do not depend on micro-batches are `fixed`'s.
MemoryForecast forecast(const MemoryForecast& fixed, const Prepared& p, const Bert& bert,
                        const Workload& work, bool recompute, int64_t processes) {
  const BertConfig& config = p.model.config;
  const MicroBatchLimits largest = larger(work.training, work.evaluation);
  // A block begins and ends within a page: in the mean it touches one more than it fills.
  auto activations = [&](const MicroBatchLimits& size, bool training) {
    return bert.activation_bytes(size.tokens, size.sequences, training, recompute) +
           arena_page(false);
  };
  const int64_t training = activations(work.training, true);
  MemoryForecast m = fixed;
  m.activations = std::max(training, activations(work.evaluation, false));
  m.scratch = cpu_scratch_bytes(
      p.backend->compute_type(), std::max<int64_t>(1, threads() / processes), work.training.tokens,
      work.evaluation.tokens, config.hidden_size, config.intermediate_size);
  m.data += batch_bytes(largest);

  // A process that sums its part of all gradients touches that part of the others' arenas.
  const int64_t of_others = m.gradients * (processes - 1) / processes;
  const int64_t running = m.weights + m.gradients + of_others + m.optimizer + m.activations +
                          m.scratch + m.data + m.evaluation + m.program;
  const int64_t loading = m.program + m.data + m.weights + p.weight_file_bytes;
  m.peak = std::max({running, loading, bytes_of_mb(peak_memory_mb())});
  m.host = m.peak;
  if (processes == 1) return m;
  const int64_t pages = p.program_pages + kLaterPages + kMpiPages;
  const int64_t evaluating = std::min(processes, work.evaluation_batches);
  m.host = m.weights + m.gradients * processes + m.optimizer + m.data + m.evaluation + pages +
           processes * (m.program - pages + m.scratch) + evaluating * m.activations +
           (processes - evaluating) * training;
  return m;
}

}  // namespace

RunPlan plan_run(const TrainOptions& given, int64_t processes, bool measure_time) {
  Prepared p = prepare(given);
  const double startup = seconds_since_start();
  TrainOptions& options = p.options;
  const SampleSet& train = p.task->train_set();
  RunPlan plan;
  plan.task = std::string(name_of(p.task->kind()));
  plan.backend = p.backend->description();
  plan.processes = processes;
  plan.shards = options.virtual_shards.value_or(processes);
  options.virtual_shards = plan.shards;
  plan.samples = train.samples.size();
  plan.train_tokens = int64_t(train.samples.ids.size());
  if (const SampleSet* eval = p.task->eval_set()) {
    plan.eval_samples = eval->samples.size();
    plan.eval_tokens = int64_t(eval->samples.ids.size());
  }
  plan.batch_size = options.batch_size;
  plan.recompute = options.recompute;
  plan.micro_batch_tokens = options.micro_batch_tokens.value_or(
      auto_micro_batch_tokens(p.model.config, p.task->max_length()));
  plan.available_mb = available_memory_mb();

  const ParameterTable table(p.model.config, p.task->head());
  const Bert bert(*p.backend, p.model.config, table);
  plan.parameters = table.count();
  plan.gradient_arenas = TreeCounter::places_needed(part(plan.shards, processes, 0));
  auto work_at = [&](int64_t micro_batch_tokens) {
    return workload_of(*p.task, options, p.schedule.total_steps, micro_batch_tokens,
                       Engine::kEvaluationSequences);
  };
  plan.work = work_at(plan.micro_batch_tokens);

  MemoryForecast fixed;
  fixed.weights = table.size() * kFloat;
  fixed.gradients =
      plan.gradient_arenas * gradient_bytes(p, table, plan.work.steps, arena_page(processes > 1));
  fixed.optimizer = optimizer_bytes(p, table);
  fixed.program =
      p.program_bytes + kLaterPages + kLaterState + (processes > 1 ? kMpiPages + kMpiState : 0);
  fixed.data = p.data_bytes;
  // The best one is kept while another one is at work.
  fixed.evaluation =
      std::min<int64_t>(plan.work.evaluations, 2) * evaluation_bytes(*p.task, p.task->head());
  plan.memory = forecast(fixed, p, bert, plan.work, options.recompute, processes);

  const int64_t largest = std::max(plan.work.training.tokens, plan.work.evaluation.tokens);
  for (int64_t tokens : {plan.micro_batch_tokens, largest / 2, largest / 4}) {
    if (tokens < plan.micro_batch_tokens && tokens < p.task->max_length()) continue;
    const Workload work = work_at(tokens);
    auto peak = [&](bool recompute) {
      return forecast(fixed, p, bert, work, recompute, processes).peak;
    };
    plan.alternatives.push_back({tokens, peak(false), peak(true)});
  }
  plan.too_large = measure_time && plan.available_mb > 0 &&
                   plan.memory.peak > bytes_of_mb(plan.available_mb + resident_memory_mb());
  if (!measure_time || plan.too_large) return plan;
  plan.time = measure_time_of({options, std::move(p.backend), p.model.config, *p.task,
                               p.lowest_layer, plan.micro_batch_tokens},
                              plan.work);
  plan.time.startup = startup;
  plan.time.total = startup + plan.time.step * double(plan.work.steps) +
                    plan.time.evaluation * double(plan.work.evaluations);
  plan.timed = true;
  return plan;
}

}  // namespace finetune
