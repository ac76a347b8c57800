// One training step: forward and backward over shards and micro-batches, reduction, clip, AdamW.
// Collective: each process computes its shards of the global batch, and updates what it owns.
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
  bool deterministic = true;  // matters only between devices: sums in the tree's order
  // Layers are exchanged together until they have this number of bytes.
  int64_t bucket_bytes = int64_t{25} << 20;
  DType wire = DType::f32;  // of gradients between devices
};

struct StepResult {
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;
  int stop_request = 0;  // the largest of all processes
  bool finite = true;    // false: loss or norm is not finite; no update, and the run ends
};

class TrainingStep {
 public:
  // Allocates gradients and optimizer state. `engine`, `objective`, `comm` and the plan's pointers
  // must outlive this. With several stages, `comm` connects the processes with the same part.
  TrainingStep(Engine& engine, Objective& objective, Communicator& comm, const StepOptions& options,
               int64_t batch_size, StagePlan plan = {});
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  // Begins update number `step` (from 0) on these training samples with this learning rate. On a
  // device the work continues after the return. `stop_request` is called late in the step: what
  // this process wants all to agree on (a stop), or 0.
  void begin(
      int64_t step, std::span<const uint32_t> batch, double learning_rate,
      const std::function<int()>& stop_request = [] { return 0; });
  // Waits for the oldest step in flight and returns its result.
  StepResult finish();
  // The number of steps in flight; and how many of them may stay in flight when the next one
  // begins, so that a device does not wait for the host.
  int64_t under_way() const { return int64_t(begun_.size()); }
  int64_t most_under_way() const;
  // begin() and finish(), with no other step in flight.
  StepResult run(int64_t step, std::span<const uint32_t> batch, double learning_rate);

  // Collective: completes the weights on every host, and the moments. They stay complete until the
  // next step begins.
  void settle();
  // The moments that this host (on a device: this process) owns.
  const HostArena& first_moments() const { return m_; }
  const HostArena& second_moments() const { return v_; }
  const ZeroPartition& partition() const { return partition_; }
  // False if NCCL adds gradients.
  bool counts_data_bytes() const { return !peers_ || in_tree_order(); }
  // For the log: the way of gradients and weights from device to device; empty on the CPU.
  std::string_view route() const;
  // For the log: what determines the bits of sums.
  std::string_view order() const;
  // Bytes of gradients and weights that this process has sent to other replicas in its steps, also
  // through the host's memory.
  int64_t data_bytes() const { return data_bytes_; }
  // The total of seconds that this process waited for others or moved data between them.
  double communication_seconds() const;

 private:
  void make_exchange(int64_t batch_size);
  bool in_tree_order() const {
    return options_.deterministic || options_.wire == DType::bf16 || !peers_->may_reduce();
  }
  bool owns() const { return comm_.local_rank() < comm_.columns(); }
  int own() const { return partition_.owner(comm_.host(), comm_.local_rank()); }
  // Losses and replicated gradients count once: the first tensor rank adds them.
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
  Communicator& comm_;   // processes with the same part of the model
  Communicator& world_;  // all processes
  StepOptions options_;
  GroupPeers* peers_;            // null: through the host's memory
  std::vector<Bucket> buckets_;  // of the dense part; empty without peers
  ZeroPartition partition_;
  std::vector<IndexRange> norm_runs_;  // runs of own slices, whose squares this process sums
  TouchedRows touched_;
  HostArena m_, v_;
  StepTotals totals_;
  const bool in_stages_;
  const Parameter* words_;                // null: this part of the model has no embeddings
  std::unique_ptr<LazyRows> lazy_words_;  // of own rows; null: none or all frozen
  bool words_move_ = false;               // the word embedding is trained
  bool has_tied_words_ = false;           // it is also the decoder: every row has a gradient
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
