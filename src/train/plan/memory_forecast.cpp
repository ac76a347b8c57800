// Sums host memory by formula: arenas, moments, activations, batches.
#include "train/plan/memory_forecast.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "data/plan.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/zero_partition.h"

namespace finetune {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// What is not there yet when the program is measured: HDF5, digests, what the heap loses, of the
// process that reads and writes; and MPI, half of it pages of files.
constexpr int64_t kLater = 14 * kMiB, kMpi = 10 * kMiB;

// What the kernel gives at once where memory is touched that asks for large pages, as arenas do.
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
    if (parameter.layer >= run.lowest_layer) elements += parameter.size();
  }
  return elements * kFloatBytes;
}

// Of a gradient arena: all that is trained, but of the word embedding the pages with rows that the
// data have.
int64_t arena_bytes(const RunShape& run) {
  const Parameter* found = word_embeddings(run.table);
  if (!found || found->layer < run.lowest_layer) return trained_bytes(run);
  const Parameter& words = *found;
  const int64_t row = words.shape[1] * kFloatBytes, page = arena_page(run.local().size() > 1);
  int64_t touched = 0, next = 0;  // pages before `next` are counted or not wanted
  for (int64_t i = 0; i < words.shape[0]; ++i) {
    if (!run.words[size_t(i)]) continue;
    const int64_t end = ((i + 1) * row - 1) / page + 1;
    touched += end - std::max(next, i * row / page);
    next = end;
  }
  const int64_t all = words.size() * kFloatBytes;
  return trained_bytes(run) - all + std::min(all, touched * page);
}

// Ids, types, positions, ... of a micro-batch, as packed, and twice as uploaded.
int64_t batch_bytes(const MicroBatchLimits& size) {
  return 3 * (5 * size.tokens + 4 * size.sequences) * int64_t(sizeof(int32_t));
}

// Of the masked head's activations, what is never touched, since few tokens are scored.
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
  // Of others' arenas a process touches its part of those that hold what they pass on.
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
  m.weights = run.table.count() * kFloatBytes;  // nobody touches gaps
  m.gradients = own_arenas * arena + passed_on * arena / here.size();
  // Moments of words that do not occur stay zero; a checkpoint reads them, and what processes share
  // is there once it has been read.
  const bool read = run.processes > 1 && run.checkpoints;
  m.optimizer = 2 * (read ? trained_bytes(run) : arena) * here.size() / run.processes;
  m.activations = std::max(training, activations(work.evaluation, false));
  m.data = run.data_bytes;
  const bool mpi = run.processes > 1 || !run.alone;
  m.program = run.program_bytes + kLater + (mpi ? kMpi : 0);
  const int64_t loading = m.program + m.data + m.weights + run.weight_file_bytes;
  m.peak =
      std::max(m.weights + m.gradients + m.optimizer + m.activations + m.data + m.program, loading);
  m.host = m.peak;
  m.shared = m.weights + m.gradients + m.optimizer;
  const int64_t files = run.program_file_bytes + (mpi ? kMpi / 2 : 0);
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
  m.data = run.data_bytes;
  m.program = run.program_bytes + kLater;
  m.peak = m.host = m.weights + m.data + m.program + run.weight_file_bytes;
  return m;
}

}  // namespace finetune
