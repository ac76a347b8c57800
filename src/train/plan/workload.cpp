// Counts steps, tokens and largest micro-batches of a run from its samples.
#include "train/plan/workload.h"

#include <algorithm>
#include <span>

#include "data/plan.h"

namespace finetune {
namespace {

// Enlarges `largest` to the largest micro-batch of these lengths. Returns how many there are.
int64_t enlarge(MicroBatchLimits& largest, std::span<const int64_t> lengths,
                const MicroBatching& cut, int64_t max_sequences) {
  int64_t count = 0;
  for (IndexRange range : micro_batches(lengths, cut)) {
    for (int64_t begin = range.begin; begin < range.end; begin += max_sequences, ++count) {
      const int64_t end = std::min(range.end, begin + max_sequences);
      int64_t tokens = 0;
      for (int64_t i = begin; i < end; ++i) tokens += lengths[size_t(i)];
      largest.tokens = std::max(largest.tokens, tokens);
      largest.sequences = std::max(largest.sequences, end - begin);
    }
  }
  return count;
}

}  // namespace

std::vector<uint32_t> first_epoch(const TokenizedSamples& samples, const TrainOptions& options,
                                  int64_t steps) {
  std::vector<uint32_t> order = epoch_order(samples.size(), options.seed, 0, !options.no_shuffle);
  if (steps < steps_per_epoch(samples.size(), *options.batch_size)) {
    order.resize(size_t(steps * *options.batch_size));
  }
  return order;
}

Workload workload_of(const Task& task, const TrainOptions& options, int64_t steps,
                     const MicroBatching& cut, int64_t evaluation_tokens) {
  const TokenizedSamples& samples = task.train_set().samples;
  const int64_t shards = options.virtual_shards.value_or(1);
  const std::vector<uint32_t> order = first_epoch(samples, options, steps);
  const int64_t count = int64_t(order.size()),
                batches = steps_per_epoch(count, *options.batch_size);
  Workload work;
  work.steps = steps;
  int64_t tokens = 0;
  std::vector<int64_t> lengths, of_shard;
  for (int64_t step = 0; step < batches; ++step) {
    const IndexRange batch = batch_range(count, *options.batch_size, step);
    lengths.clear();
    for (int64_t i = batch.begin; i < batch.end; ++i) {
      lengths.push_back(samples.length(order[size_t(i)]));
      tokens += lengths.back();
    }
    const std::vector<uint32_t> places = shard_order(lengths, shards);
    for (int64_t k = 0; k < std::min(shards, batch.size()); ++k) {
      const IndexRange shard = part(batch.size(), shards, k);
      of_shard.clear();
      for (int64_t i = shard.begin; i < shard.end; ++i) {
        of_shard.push_back(lengths[places[size_t(i)]]);
      }
      enlarge(work.training, of_shard, cut, batch.size());
    }
  }
  work.step_samples = double(count) / double(std::max<int64_t>(1, batches));
  work.step_tokens = double(tokens) / double(std::max<int64_t>(1, batches));
  if (const SampleSet* eval = task.eval_set()) {
    lengths.clear();
    for (int64_t i = 0; i < eval->samples.size(); ++i) lengths.push_back(eval->samples.length(i));
    work.evaluation_batches =
        enlarge(work.evaluation, lengths, MicroBatching::of_tokens(evaluation_tokens),
                Engine::kEvaluationSequences);
    const int64_t every =
        options.eval_every.value_or(steps_per_epoch(samples.size(), *options.batch_size));
    work.evaluations = (steps - 1) / every + 1;  // the last evaluation is at the end
  }
  return work;
}

std::vector<bool> words_of(const TokenizedSamples& samples, const TrainOptions& options,
                           int64_t steps, int64_t rows) {
  std::vector<bool> words(size_t(rows), false);
  for (uint32_t index : first_epoch(samples, options, steps)) {
    for (int64_t t = samples.offsets[index]; t < samples.offsets[index + 1]; ++t) {
      words[size_t(samples.ids[size_t(t)])] = true;
    }
  }
  return words;
}

}  // namespace finetune
