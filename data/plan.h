// Which sample goes where: pure functions, the same on every process.
//
// One epoch is a permutation of the samples. It is cut into global batches (the last keeps its
// true size); a global batch into K virtual shards with about as many tokens each; a shard into
// micro-batches by number of tokens. Processes own contiguous blocks of shards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/index_range.h"
#include "core/numeric/philox.h"

namespace finetune {

// 0..count-1 in an order that follows from (seed, use, epoch) alone.
std::vector<uint32_t> permutation(int64_t count, uint64_t seed, RandomUse use, int64_t epoch);

// Order of the samples in an epoch: 0..count-1, shuffled by Philox(seed; shuffle, epoch) unless
// `shuffle` is false.
std::vector<uint32_t> epoch_order(int64_t count, uint64_t seed, int64_t epoch, bool shuffle);

int64_t steps_per_epoch(int64_t count, int64_t batch_size);  // ceil
// Samples of step `step_in_epoch`, as a range of positions in the epoch's order.
IndexRange batch_range(int64_t count, int64_t batch_size, int64_t step_in_epoch);

// Shards of process p: part(shards, processes, p).

// The places of a global batch, whose samples have these lengths, in the order of its shards: shard
// k has the places at part(batch, shards, k) of it, ascending. So shards have as many samples, and
// about as many tokens: the longest sample first, each goes to the shard with the fewest tokens of
// those that lack samples. All places in order for one shard.
std::vector<uint32_t> shard_order(std::span<const int64_t> lengths, int64_t shards);

// How a shard is cut into micro-batches: by a bound on their tokens or, where `runs` is not 0, into
// a number of them.
struct MicroBatching {
  int64_t tokens = 0;
  int64_t runs = 0;

  static MicroBatching of_tokens(int64_t most) { return {most, 0}; }
  static MicroBatching into(int64_t runs) { return {0, runs}; }
};

// Cuts sequences with these lengths, in order. Ranges cover [0, lengths.size()), none is empty.
std::vector<IndexRange> micro_batches(std::span<const int64_t> lengths, const MicroBatching& cut);
// Into runs of at most `max_tokens` tokens each (a longer single sequence is a run of its own).
std::vector<IndexRange> micro_batches(std::span<const int64_t> lengths, int64_t max_tokens);
// Into R = min(runs, sequences) runs of about equal tokens. Run k ends at the boundary of sequences
// that is nearest to (k + 1) / R of all tokens (of two, the lower one), but each run has a
// sequence: where the one before ends there, one further; and no later than leaves one for each
// that follows. No run has more tokens than an R-th of all and the longest sequence.
std::vector<IndexRange> equal_runs(std::span<const int64_t> lengths, int64_t runs);

// The largest micro-batch that can come of up to `count` sequences with lengths in these bounds.
struct SequenceBounds {
  int64_t count = 0, longest = 0, shortest = 0;
};
struct RunBounds {
  int64_t tokens = 0, sequences = 0;
};
RunBounds largest_run(const SequenceBounds& sequences, const MicroBatching& cut);

}  // namespace finetune
