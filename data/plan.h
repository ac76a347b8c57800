// Decides which sample goes where: pure functions with the same result on every process.
//
// An epoch is a permutation of the samples. It is cut into global batches (the last one may be
// smaller), a global batch into K virtual shards of about equal tokens, and a shard into
// micro-batches by number of tokens. Each process owns a contiguous block of shards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/index_range.h"
#include "core/numeric/philox.h"

namespace finetune {

// Returns 0..count-1 in an order that depends only on (seed, use, epoch).
std::vector<uint32_t> permutation(int64_t count, uint64_t seed, RandomUse use, int64_t epoch);

// Returns the order of the samples in an epoch: 0..count-1, shuffled by Philox(seed; shuffle,
// epoch) unless `shuffle` is false.
std::vector<uint32_t> epoch_order(int64_t count, uint64_t seed, int64_t epoch, bool shuffle);

int64_t steps_per_epoch(int64_t count, int64_t batch_size);  // ceil
// Returns the samples of step `step_in_epoch`, as a range of positions in the epoch's order.
IndexRange batch_range(int64_t count, int64_t batch_size, int64_t step_in_epoch);

// Process p owns the shards part(shards, processes, p).

// Distributes a global batch, given the lengths of its samples, over shards. Returns the samples'
// places in the order of the shards: shard k gets the places at part(batch, shards, k), ascending.
// Each shard gets an equal number of samples and about equal tokens: samples are assigned from long
// to short, each to the shard with the fewest tokens that still lacks samples. With one shard the
// places stay in order.
std::vector<uint32_t> shard_order(std::span<const int64_t> lengths, int64_t shards);

// How a shard is cut into micro-batches: by a limit on their tokens or, if `runs` is not 0, into
// that number of micro-batches.
struct MicroBatching {
  int64_t tokens = 0;
  int64_t runs = 0;

  static MicroBatching of_tokens(int64_t most) { return {most, 0}; }
  static MicroBatching into(int64_t runs) { return {0, runs}; }
};

// Cuts sequences of these lengths, in order. The ranges cover [0, lengths.size()); none is empty.
std::vector<IndexRange> micro_batches(std::span<const int64_t> lengths, const MicroBatching& cut);
// Cuts into runs of at most `max_tokens` tokens each; a longer sequence is a run of its own.
std::vector<IndexRange> micro_batches(std::span<const int64_t> lengths, int64_t max_tokens);
// Cuts into R = min(runs, sequences) runs of about equal tokens. Run k ends at the sequence
// boundary nearest to (k + 1) / R of all tokens (a tie goes to the lower one), moved where needed
// so that this run and each later run has at least one sequence. No run has more than 1/R of all
// tokens plus the longest sequence.
std::vector<IndexRange> equal_runs(std::span<const int64_t> lengths, int64_t runs);

// Bounds of up to `count` sequences, and the size of the largest micro-batch cut from them.
struct SequenceBounds {
  int64_t count = 0, longest = 0, shortest = 0;
};
struct RunBounds {
  int64_t tokens = 0, sequences = 0;
};
RunBounds largest_run(const SequenceBounds& sequences, const MicroBatching& cut);

}  // namespace finetune
