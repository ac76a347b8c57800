// The passes of one step over the micro-batches of a process's shards, action by action.
// A process that has the whole model is a pipeline of one stage: F0 B0 F1 B1 ... in one slot.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "data/plan.h"
#include "distributed/layout/layout_groups.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "distributed/reduce/gradient_reduce.h"
#include "distributed/zero_partition.h"
#include "engine/engine.h"
#include "tasks/objective.h"

namespace finetune {

// Messages between the stages of one pipeline: (T, H) of f32 in the backend's memory. Each pair of
// stages and kind of message is a channel, in which they come in the order in which they were sent.
class StageLinks {
 public:
  virtual ~StageLinks() = default;
  // A step of so many micro-batches begins, or has ended: what the backend does from then on comes
  // after its messages.
  virtual void begin(int64_t /*micro_batches*/) {}
  virtual void end() {}
  // `action` names micro-batch, chunk and the stage at the other end. When send returns `from` may
  // be overwritten; when receive returns (in the backend's order) `into` is there.
  virtual void send(const PipelineAction& action, Tensor from) = 0;
  virtual void receive(const PipelineAction& action, Tensor into) = 0;
  // During a long computation: moves on what is under way.
  virtual void advance() {}
};

// Of the stage that this process is; by default the only one.
struct StagePlan {
  // What it does in a step of so many micro-batches, which are those of all shards in order.
  std::function<std::vector<PipelineAction>(int64_t micro_batches)> actions = one_stage;
  StageLinks* links = nullptr;
  // Where given, told of each pass how much processor time it took; then no passes are joined.
  std::function<void(const PipelineAction&, double cpu_seconds)> record = {};
  // Of all stages and replicas, which have a step's norm, loss and end in common; null: the
  // replicas' own.
  Communicator* world = nullptr;
  GroupPeers* replicas = nullptr;  // where they have a device each; null: through the host

  static std::vector<PipelineAction> one_stage(int64_t micro_batches);
};

// What is the same in all passes of a step.
struct StepBatch {
  std::span<const uint32_t> samples;  // the global batch
  const DropoutPlan* dropout = nullptr;
  float loss_scale = 1;
  double* losses = nullptr;  // backend memory, one for each of this process's shards
  // Where given, called with each trained layer in the backward pass of the last micro-batch, when
  // the work that completes its gradient is under way; of replayed passes once recorded.
  std::function<void(int)> complete = {};
};

struct PassOptions {
  MicroBatching micro_batches;
  int64_t virtual_shards = 1;
  int lowest_layer = 0;
};

class StagePasses {
 public:
  // All but the options must outlive this. `buckets`: of GradientReduce::ready. `max_losses`: of
  // a micro-batch as it is computed. `sum` knows the chunks of the engine's part.
  StagePasses(Engine& engine, Objective& objective, GradientReduce& sum,
              const std::vector<Bucket>& buckets, int64_t max_losses, const PassOptions& options,
              StagePlan plan = {});

  // Forward and backward over this process's shards; afterwards all of them are pushed, and the
  // sums of their losses written: zeros where the stage has no head.
  void run(const StepBatch& step, const TouchedRows& touched);

 private:
  struct MicroBatch {
    int64_t shard = 0;  // of this process's, 0 for the first
    IndexRange places;  // in places_
    bool first = false;
  };
  // How far a chunk is in a step. Its backward passes come in the order of the shards; another
  // chunk may be at an earlier shard, or a later one.
  struct Chunk {
    IndexRange elements;  // of the dense gradient
    bool has_backward = false;
    std::vector<int64_t> passes_left;  // backward passes of each shard
    int64_t shard = 0;                 // the first that is not pushed
    float* leaf = nullptr;             // of that shard, once a pass has asked for it
  };
  enum class Unit : int64_t { forward, backward, both };

  void cut(const StepBatch& step);
  void take(const PipelineAction& action);
  DeviceBatch& batch_in_slot(const PipelineAction& action);
  const PackedBatch& packed(int micro_batch);
  // Runs one unit of work, which a device may do by replaying it.
  void compute(Unit unit, const PipelineAction& action);
  float* gradients_for(int chunk, int64_t shard);
  void pass_done(int chunk, int64_t shard);
  void push_empty(int chunk);
  void advance() const {
    if (plan_.links) plan_.links->advance();
  }
  Tensor losses(int64_t count) const { return vector(static_cast<float*>(losses_.get()), count); }

  Engine& engine_;
  Objective& objective_;
  GradientReduce& sum_;
  const std::vector<Bucket>& buckets_;
  PassOptions options_;
  StagePlan plan_;
  std::shared_ptr<void> losses_;  // (1, those of the largest micro-batch)

  // Of the step under way.
  StepBatch step_;
  const TouchedRows* touched_ = nullptr;
  std::vector<uint32_t> places_;  // in the global batch, in the order of the shards
  std::vector<MicroBatch> micro_batches_;
  std::vector<std::pair<int, int>> in_slot_;  // micro-batch and chunk
  std::vector<Chunk> chunks_;
  std::vector<int64_t> lengths_;
  std::vector<uint32_t> samples_;
  PackedBatch packed_;
  int packed_micro_batch_ = -1;
};

}  // namespace finetune
