#include "train/workload.h"

#include <algorithm>
#include <span>

#include "data/plan.h"

namespace finetune {
namespace {

// Later epochs have other micro-batches of nearly the same sizes.
constexpr int64_t kMostSamplesLookedAt = 4'000'000;

void enlarge(MicroBatchLimits& largest, const MicroBatchLimits& other) {
  largest.tokens = std::max(largest.tokens, other.tokens);
  largest.sequences = std::max(largest.sequences, other.sequences);
}

MicroBatchLimits largest_of(std::span<const int64_t> lengths, int64_t max_tokens,
                            int64_t max_sequences) {
  MicroBatchLimits largest;
  for (IndexRange range : micro_batches(lengths, max_tokens)) {
    for (int64_t begin = range.begin; begin < range.end; begin += max_sequences) {
      MicroBatchLimits size;
      size.sequences = std::min(max_sequences, range.end - begin);
      for (int64_t i = begin; i < begin + size.sequences; ++i) size.tokens += lengths[size_t(i)];
      enlarge(largest, size);
    }
  }
  return largest;
}

std::vector<int64_t> lengths_of(const TokenizedSamples& samples, std::span<const uint32_t> order) {
  std::vector<int64_t> lengths;
  for (uint32_t index : order) lengths.push_back(samples.length(index));
  return lengths;
}

// How often something happens that is due every N steps (else after each epoch), and at the end.
int64_t times_due(int64_t steps, std::optional<int64_t> every, int64_t per_epoch) {
  return (steps + every.value_or(per_epoch) - 1) / every.value_or(per_epoch);
}

}  // namespace

Workload workload_of(const Task& task, const TrainOptions& options, int64_t steps,
                     int64_t micro_batch_tokens, int64_t evaluation_sequences) {
  const TokenizedSamples& samples = task.train_set().samples;
  const int64_t count = samples.size(), per_epoch = steps_per_epoch(count, options.batch_size);
  const int64_t shards = options.virtual_shards.value_or(1);
  Workload work;
  work.steps = steps;
  std::vector<uint32_t> order;  // of the epoch
  int64_t looked_at = 0, tokens = 0, step = 0;
  for (; step < steps && looked_at < kMostSamplesLookedAt; ++step) {
    if (step % per_epoch == 0) {
      order = epoch_order(count, options.seed, step / per_epoch, !options.no_shuffle);
    }
    const IndexRange range = batch_range(count, options.batch_size, step % per_epoch);
    const auto batch = std::span(order).subspan(size_t(range.begin), size_t(range.size()));
    looked_at += range.size();
    const std::vector<int64_t> lengths = lengths_of(samples, batch);
    for (int64_t length : lengths) tokens += length;
    for (int64_t k = 0; k < std::min(shards, range.size()); ++k) {
      const IndexRange shard = part(range.size(), shards, k);
      enlarge(work.training,
              largest_of(std::span(lengths).subspan(size_t(shard.begin), size_t(shard.size())),
                         micro_batch_tokens, range.size()));
    }
  }
  work.step_tokens = double(tokens) / double(std::max<int64_t>(1, step));
  work.saves = times_due(steps, options.save_every, per_epoch);
  if (const SampleSet* eval = task.eval_set()) {
    std::vector<uint32_t> all(size_t(eval->samples.size()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = uint32_t(i);
    const std::vector<int64_t> lengths = lengths_of(eval->samples, all);
    work.evaluation = largest_of(lengths, micro_batch_tokens, evaluation_sequences);
    work.evaluation_batches = int64_t(micro_batches(lengths, micro_batch_tokens).size());
    work.evaluations = times_due(steps, options.eval_every, per_epoch);
  }
  return work;
}

std::vector<bool> rows_touched(const TokenizedSamples& samples, const TrainOptions& options,
                               int64_t steps, int64_t rows) {
  std::vector<bool> touched(size_t(rows), false);
  const int64_t count = samples.size();
  const std::vector<uint32_t> order = epoch_order(count, options.seed, 0, !options.no_shuffle);
  for (int64_t i = 0; i < std::min(count, steps * options.batch_size); ++i) {
    const uint32_t index = order[size_t(i)];
    for (int64_t t = samples.offsets[index]; t < samples.offsets[index + 1]; ++t) {
      touched[size_t(samples.ids[size_t(t)])] = true;
    }
  }
  return touched;
}

}  // namespace finetune
