// Sums host memory by formula: arenas, moments, activations, batches.
#include "train/plan/memory_forecast.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/process_stats.h"
#include "data/packing.h"
#include "data/plan.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/zero_partition.h"
#include "model/tensor_sum.h"
#include "train/layout/stages.h"

namespace finetune {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Memory that is not there yet when the program is measured: HDF5, digests and heap losses in the
// process that reads and writes; and MPI, half of it pages of files.
constexpr int64_t kLater = 14 * kMiB, kMpi = 10 * kMiB;

// The page size for memory that asks for large pages, as arenas do.
int64_t arena_page(bool shared) {
  std::ifstream file(shared ? "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
                            : "/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  const bool small = text.empty() || text.find("[never]") != std::string::npos ||
                     text.find("[deny]") != std::string::npos;
  return small ? 4096 : 2 * kMiB;
}

int64_t trained_bytes(const RunShape& run) {
  int64_t elements = 0;
  for (const Parameter& parameter : run.table.parameters()) {
    if (parameter.layer >= run.facts.lowest_layer) elements += parameter.size();
  }
  return elements * kFloatBytes;
}

// Touched bytes of a gradient arena: all trained parameters, but of the word embedding only the
// pages with rows that occur in the data.
int64_t arena_bytes(const RunShape& run) {
  const Parameter* found = word_embeddings(run.table);
  if (!found || found->layer < run.facts.lowest_layer) return trained_bytes(run);
  const Parameter& words = *found;
  const int64_t row = words.shape[1] * kFloatBytes, page = arena_page(run.local().size() > 1);
  int64_t touched = 0, next = 0;  // pages before `next` are counted or not wanted
  for (int64_t i = 0; i < words.shape[0]; ++i) {
    if (!run.facts.words[size_t(i)]) continue;
    const int64_t end = ((i + 1) * row - 1) / page + 1;
    touched += end - std::max(next, i * row / page);
    next = end;
  }
  const int64_t all = words.size() * kFloatBytes;
  return trained_bytes(run) - all + std::min(all, touched * page);
}

// Ids, types, positions, ... of a micro-batch: one packed copy and two uploaded copies.
int64_t batch_bytes(const MicroBatchLimits& size) {
  return 3 * (5 * size.tokens + 4 * size.sequences) * int64_t(sizeof(int32_t));
}

// The part of the masked head's activations that is never touched, since few tokens are scored.
int64_t untouched_bytes(const RunShape& run, const MicroBatchLimits& size) {
  const ParameterTable& table = run.table;
  if (table.head().kind != HeadKind::masked || !table.part().head) return 0;
  const double scored = run.scored_share * double(size.tokens) + 0.5 * double(size.sequences);
  const int64_t unscored = std::max<int64_t>(0, size.tokens - int64_t(std::ceil(scored)));
  const int64_t hidden = word_embeddings(table)->shape[1];
  return unscored * (table.head().outputs + 4 * hidden) * kFloatBytes;
}

}  // namespace

MemoryForecast forecast_memory(const RunShape& run, const Workload& work, bool recompute) {
  auto activations = [&](const MicroBatchLimits& size, bool training) {
    const int64_t slots = training ? run.slots : 1;
    return run.encoder.activation_bytes(size.tokens, size.sequences, training, recompute, slots) +
           slots * batch_bytes(size) - slots * untouched_bytes(run, size);
  };
  // In other processes' arenas, a process touches its share of each subtree that they pass on.
  const IndexRange here = run.local();
  int64_t own_arenas = 0, host_arenas = 0, passed_on = 0;
  for (int64_t process = here.end - 1; process >= here.begin; --process) {
    const IndexRange shards = part(run.shards, run.processes, process);
    own_arenas = LocalReduce::arenas_needed(shards);
    host_arenas += own_arenas;
    if (process > here.begin) passed_on += int64_t(subtrees_of(shards).size());
  }
  const int64_t arena = arena_bytes(run), training = activations(work.training, true);

  MemoryForecast m;
  m.weights = run.table.count() * kFloatBytes;  // gaps are never touched
  m.gradients = own_arenas * arena + passed_on * arena / here.size();
  // Moments of words that do not occur stay untouched zeros. But a checkpoint reads all moments,
  // and shared memory is allocated when it is read.
  const bool read = run.processes > 1 && run.checkpoints;
  m.optimizer = 2 * (read ? trained_bytes(run) : arena) * here.size() / run.processes;
  m.activations = std::max(training, activations(work.evaluation, false));
  m.data = run.facts.data_bytes;
  const bool mpi = run.processes > 1 || !run.alone;
  m.program = run.facts.program_bytes + kLater + (mpi ? kMpi : 0);
  const int64_t loading = m.program + m.data + m.weights + run.facts.weight_file_bytes;
  m.peak =
      std::max(m.weights + m.gradients + m.optimizer + m.activations + m.data + m.program, loading);
  m.host = m.peak;
  m.shared = m.weights + m.gradients + m.optimizer;
  const int64_t files = run.facts.program_file_bytes + (mpi ? kMpi / 2 : 0);
  m.common = m.data + kLater + files;
  if (run.processes == 1) return m;
  const int64_t evaluating = std::min(run.processes, work.evaluation_batches);
  m.shared = m.weights + host_arenas * arena + m.optimizer;
  m.host = m.shared + m.data + kLater + files + run.processes * (m.program - kLater - files) +
           evaluating * m.activations + (run.processes - evaluating) * training;
  return m;
}

MemoryForecast forecast_memory_beside_device(const RunShape& run) {
  MemoryForecast m;
  m.weights = run.table.size() * kFloatBytes;
  m.data = run.facts.data_bytes;
  m.program = run.facts.program_bytes + kLater;
  m.peak = m.host = m.weights + m.data + m.program + run.facts.weight_file_bytes;
  return m;
}

namespace {

constexpr int kMostPasses = 10;
constexpr int kStillPasses = 2;                     // passes without growth
constexpr int64_t kMostBytes = int64_t{256} << 20;  // of activations

PackedBatch batch_of(const MicroBatchLimits& size) {
  TokenizedSamples samples;
  samples.ids.assign(size_t(size.tokens), 0);
  for (int64_t i = 0; i < size.sequences; ++i) {
    samples.offsets.push_back(part(size.tokens, size.sequences, i).end);
    samples.second.push_back(uint32_t(samples.length(i)));
  }
  std::vector<uint32_t> all(size_t(size.sequences));
  std::iota(all.begin(), all.end(), 0u);
  PackedBatch batch;
  pack(samples, all, {}, batch);
  return batch;
}

}  // namespace

void probe_memory(Backend& backend, EncoderConfig config, Head head, int64_t tensor_shards,
                  const Workload& work, bool recompute) {
  config.num_hidden_layers = std::min<int64_t>(config.num_hidden_layers, 2);
  config.vocab_size = std::min<int64_t>(config.vocab_size, 1000);
  if (head.kind == HeadKind::masked) head.outputs = config.vocab_size;
  const ParameterTable table(config, head, ModelPart::whole(config, tensor_shards));
  const size_t bytes = size_t(table.size()) * sizeof(float);
  const auto weights = backend.allocate(bytes), gradients = backend.allocate(bytes);
  auto* w = static_cast<float*>(weights.get());
  Encoder encoder(backend, config, table);
  auto pass = [&](MicroBatchLimits size, bool training) {
    if (size.tokens == 0) return;
    while (size.sequences > 1 && encoder.activation_bytes(size.tokens, size.sequences, training,
                                                          recompute) > kMostBytes) {
      size = {size.tokens / 2, size.sequences / 2};
    }
    DeviceBatch batch(backend, size.tokens, size.sequences);
    batch.upload(batch_of(size));
    encoder.reserve(size.tokens, size.sequences, training, recompute);
    const Tensor logits = encoder.forward(batch, w, nullptr, training);
    if (!training) return;
    encoder.backward(batch, w, static_cast<float*>(gradients.get()), logits, nullptr, 0, false);
  };
  // Until each thread has its largest buffers: with a small model one thread may do all work.
  double resident = 0;
  for (int i = 0, still = 0; i < kMostPasses && still < kStillPasses; ++i) {
    pass(work.training, true);
    pass(work.evaluation, false);
    const double now = resident_memory_mb();
    still = now > resident + 1 ? 0 : still + 1;
    resident = std::max(resident, now);
  }
}

PlannedParts::PlannedParts(const TrainOptions& options, const EncoderConfig& config, Head head,
                           const Layout& layout, Backend& backend, const SampleView& samples)
    : options_(options),
      config_(config),
      head_(head),
      layout_(layout),
      split_(stages_of(options, config, head.kind)),
      backend_(backend),
      samples_(samples) {}

MemoryForecast PlannedParts::forecast_of(int rank, const RunFacts& facts, int slots,
                                         const Workload* work, bool recompute) const {
  const ModelPart part = part_of(split_, layout_, *options_.tensor_shards, rank);
  const ParameterTable table(config_, head_, part);
  const auto sum = make_solo_tensor_sum(part.tensor_shards);  // adds nothing
  const Encoder encoder(backend_, config_, table, part, sum.get());
  const RunShape run{.table = table,
                     .encoder = encoder,
                     .facts = facts,
                     .shards = *options_.virtual_shards,
                     .processes = layout_.dp(),
                     .slots = slots,
                     .alone = whole(),
                     .scored_share = options_.mask_probability};
  return work ? forecast_memory(run, *work, recompute) : forecast_memory_beside_device(run);
}

MemoryForecast PlannedParts::forecast(const RunFacts& facts, const Workload& work,
                                      int64_t micro_batches, int64_t tokens, bool recompute) const {
  TrainOptions options = options_;
  options.micro_batches = micro_batches > 0 ? std::optional(micro_batches) : std::nullopt;
  options.micro_batch_tokens = tokens;
  const PipelineShape shape =
      pipeline_shape(options, config_, split_, most_micro_batches(options, samples_));
  const int64_t shards = part(*options_.virtual_shards, layout_.dp(), 0).size();
  MemoryForecast first;
  for (int rank = 0; rank < layout_.world(); ++rank) {
    if (layout_.at(rank).d != 0) continue;  // counted with the first replica
    const int slots = slots_of_stage(shape, shards, layout_.at(rank).p);
    const MemoryForecast of = forecast_of(rank, facts, slots, &work, recompute);
    if (rank == 0) {
      first = of;
    } else {
      first.host += of.host - of.common;
    }
  }
  return first;
}

MemoryForecast PlannedParts::forecast_beside_device(const RunFacts& facts) const {
  return forecast_of(0, facts, 1, nullptr, false);
}

}  // namespace finetune
