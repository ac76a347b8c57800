// Batch dispatch: evaluation and prediction on all processes, planned by rank 0.
// Rank 0 reads the samples, plans micro-batches independently of the processes and their layout,
// dispatches each to a whole replica, and takes the logits in order. So metrics and files are the
// same for any number of processes and any layout, and only rank 0 needs the samples. A sample with
// the tokens of an earlier one is not computed again (logits_cache.h), and the evaluator gets one
// result for a row of several windows (window_pool.h).
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/numeric/packed_batch.h"
#include "data/plan.h"
#include "engine/engine.h"
#include "inference/logits_cache.h"
#include "inference/overlap/pending_logits.h"
#include "inference/replica_stages.h"
#include "tasks/evaluator.h"

namespace finetune {

// Valid for one state of the weights, since it remembers logits that it has computed.
class BatchDispatcher {
 public:
  // Every process has the whole model.
  BatchDispatcher(Engine& engine, Communicator& comm);
  // Every process is a stage of a replica.
  BatchDispatcher(Engine& engine, ReplicaStages& stages);

  // On rank 0. Runs the evaluator's samples through the model in micro-batches that do not depend
  // on its chunks, unless it answers each chunk before the next. Calls `poll` between micro-batches
  // with the share that is done. Returns the number of samples, or nothing if `poll` returned
  // false. Afterwards call evaluate() again or done().
  std::optional<int64_t> evaluate(Evaluator& evaluator, int64_t micro_batch_tokens,
                                  const std::function<bool(double)>& poll);
  // The number of samples so far that were not computed again.
  int64_t cache_hits() const { return cache_ ? cache_->hits() : 0; }
  // On rank 0, after the last evaluate(): makes serve() return on the other processes.
  void done();

  // Where rank 0's samples come from: memory, or files and pipes. For files and pipes the other
  // processes wait without a timeout.
  enum class Rank0 { has_samples, reads_input };
  // On all other processes: computes the micro-batches dispatched to it, until rank 0's done().
  void serve(Rank0 rank0 = Rank0::has_samples);

 private:
  std::vector<uint8_t> next_round(Rank0 rank0);
  void take(const SampleView& samples, TokenizedSamples& waiting, LogitsSink& sink);
  void add(const TokenizedSamples& samples, IndexRange range, int64_t samples_before,
           LogitsSink& sink);
  void flush(LogitsSink& sink);
  void give(const PackedBatch& batch, const float* logits, LogitsSink& sink);
  void start(LogitsSink& sink);
  void take_oldest(LogitsSink& sink);
  void infer(std::span<const PackedBatch> batches, std::vector<float>& logits);

  int replicas() const { return stages_ ? stages_->layout().dp() : comm_.size(); }
  int replica_of(int rank) const { return stages_ ? stages_->layout().at(rank).d : rank; }
  int in_flight() const { return stages_ ? stages_->in_flight() : 1; }
  PackedBatch& waiting(size_t index);
  std::span<const PackedBatch> waiting_for(int replica) const;

  Engine& engine_;
  Communicator& comm_;
  ReplicaStages* stages_ = nullptr;
  std::optional<LogitsCache> cache_;  // only for a sequence head: one row of logits a sample
  // Up to in_flight() micro-batches for each replica, side by side.
  std::vector<PackedBatch> waiting_;
  size_t count_ = 0;
  PendingLogits pending_;  // used by a single process on a device
  std::array<PackedBatch, PendingLogits::kMost> started_;
  int64_t given_ = 0;  // micro-batches
};

}  // namespace finetune
