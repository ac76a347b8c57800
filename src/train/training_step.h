// One training step: forward and backward over shards and micro-batches, reduction, clip, AdamW.
// Collective: every process computes its shards of the global batch, sums and updates what it owns.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "distributed/device/device_exchange.h"
#include "distributed/host_arena.h"
#include "distributed/reduce/gradient_reduce.h"
#include "distributed/step_totals.h"
#include "distributed/touched_rows.h"
#include "distributed/weight_gather.h"
#include "engine/engine.h"
#include "tasks/objective.h"
#include "train/lazy_rows.h"
#include "train/stage_passes.h"

namespace finetune {

struct StepOptions {
  uint64_t seed = 42;
  int64_t virtual_shards = 1;
  MicroBatching micro_batches;
  double dropout = -1;         // < 0: the model's own probabilities
  double max_grad_norm = 1.0;  // 0: no clipping
  double weight_decay = 0.01;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double layer_lr_decay = 1.0;
  int lowest_layer = 0;       // layers below are frozen: neither gradient nor update
  bool deterministic = true;  // between devices alone: sums in the tree's order
  // Layers are exchanged together until they have so many bytes.
  int64_t bucket_bytes = int64_t{25} << 20;
  DType wire = DType::f32;  // of gradients between devices
};

struct StepResult {
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;
  int stop_request = 0;  // the largest that a process had
  bool finite = true;    // false: loss or norm is not, nothing was updated, and the run is over
};

class TrainingStep {
 public:
  // Allocates gradients and optimizer state; `engine`, `objective` and `comm` must outlive this,
  // and what the plan points to. Of a stage of several: `comm` is of those that have the same part.
  TrainingStep(Engine& engine, Objective& objective, Communicator& comm, const StepOptions& options,
               int64_t batch_size, StagePlan plan = {});
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  // Update number `step` (0 for the first) on these training samples at this learning rate. On a
  // device the work goes on when this returns. `stop_request`: what this process would like all to
  // agree on (to stop), 0 for nothing; asked late in the step.
  void begin(
      int64_t step, std::span<const uint32_t> batch, double learning_rate,
      const std::function<int()>& stop_request = [] { return 0; });
  // What came of the oldest step that has begun and not finished; waits for it.
  StepResult finish();
  // Steps that have begun and not finished; and how many of them to leave so before the next one
  // begins, for a device not to wait for the host.
  int64_t under_way() const { return int64_t(begun_.size()); }
  int64_t most_under_way() const;
  // Both, with no other step under way.
  StepResult run(int64_t step, std::span<const uint32_t> batch, double learning_rate);

  // Collective: afterwards the weights and moments are complete until the next step begins, the
  // weights on every host.
  void settle();
  // What this host (on a device: this process) has of the moments.
  const HostArena& first_moments() const { return m_; }
  const HostArena& second_moments() const { return v_; }
  const ZeroPartition& partition() const { return partition_; }
  // Not where NCCL adds gradients.
  bool counts_data_bytes() const { return !peers_ || in_tree_order(); }
  // For the log: how gradients and weights come from device to device; empty on the CPU.
  std::string_view route() const;
  // For the log: what holds of the bits of sums.
  std::string_view order() const;
  // Bytes that this process has handed to the other replicas in its steps: of gradients and
  // weights, through memory of the host too.
  int64_t data_bytes() const { return data_bytes_; }
  // Seconds that this process has waited for others or moved data between them, in all.
  double communication_seconds() const;

 private:
  void make_exchange(int64_t batch_size);
  bool in_tree_order() const {
    return options_.deterministic || options_.wire == DType::bf16 || !peers_->may_reduce();
  }
  bool owns() const { return comm_.local_rank() < comm_.columns(); }
  int own() const { return partition_.owner(comm_.host(), comm_.local_rank()); }
  // Losses and what all tensor ranks have count once: the first of them adds them.
  bool adds_replicated() const { return engine_.part().shards.begin == 0; }
  StepShare share() const;
  void find_norm_runs();
  void find_touched_rows(std::span<const uint32_t> batch);
  bool sums_squares_early() const;
  void add_squares_of(int layer);
  void add_up_squares(bool early);
  void update(int64_t step, double learning_rate, const AdamW& clipping);
  template <typename Action>
  void communicate(const char* phase, int64_t step, Action&& action);
  template <typename Action>
  void count_data_bytes(Action&& action);

  Engine& engine_;
  Objective& objective_;
  Communicator& comm_;   // of those with the same part of the model
  Communicator& world_;  // of all
  StepOptions options_;
  GroupPeers* peers_;            // null: through memory of the host
  std::vector<Bucket> buckets_;  // of the dense part; empty without peers
  ZeroPartition partition_;
  std::vector<IndexRange> norm_runs_;  // of own slices, whose squares this process adds
  TouchedRows touched_;
  HostArena m_, v_;
  StepTotals totals_;
  const bool in_stages_;
  const Parameter* words_;                // null: this part of the model has no embeddings
  std::unique_ptr<LazyRows> lazy_words_;  // of own rows; null if there are none, or all frozen
  bool words_move_ = false;               // the word embedding is trained
  bool has_tied_words_ = false;           // and is the decoder too: every row has a gradient
  int64_t steps_per_epoch_ = 1;
  std::unique_ptr<GradientReduce> sum_;
  std::unique_ptr<WeightGather> weight_gather_;
  bool settled_ = true;
  double communication_seconds_ = 0;
  int64_t data_bytes_ = 0;
  std::deque<StepResult> begun_;
  std::unique_ptr<StagePasses> passes_;
  std::vector<DropoutStream> host_streams_;
  std::shared_ptr<void> streams_;  // the same in backend memory
  std::vector<int32_t> own_rows_;
  std::vector<AdamWPart> parts_;
};

}  // namespace finetune
