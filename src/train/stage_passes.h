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
// stages and kind of message is a channel; its messages arrive in the order they were sent.
class StageLinks {
 public:
  virtual ~StageLinks() = default;
  // A step with this number of micro-batches begins, or has ended. The backend's later work runs
  // after the step's messages.
  virtual void begin(int64_t /*micro_batches*/) {}
  virtual void end() {}
  // `action` names micro-batch, chunk and the other stage. When send returns, `from` may be
  // overwritten. When receive returns, `into` is valid for later work of the backend.
  virtual void send(const PipelineAction& action, Tensor from) = 0;
  virtual void receive(const PipelineAction& action, Tensor into) = 0;
  // Makes progress with pending messages during a long computation.
  virtual void advance() {}
};

// The work of this process's stage; by default there is only one stage.
struct StagePlan {
  // The stage's actions in a step with this number of micro-batches, in all shards together.
  std::function<std::vector<PipelineAction>(int64_t micro_batches)> actions = one_stage;
  StageLinks* links = nullptr;
  // If set, called after each pass with its processor time. Then passes are not joined.
  std::function<void(const PipelineAction&, double cpu_seconds)> record = {};
  // All stages and replicas; they share a step's norm, loss and stop request. Null: only the
  // replicas.
  Communicator* world = nullptr;
  GroupPeers* replicas = nullptr;  // if each has a device; null: through the host

  static std::vector<PipelineAction> one_stage(int64_t micro_batches);
};

// The inputs that all passes of a step share.
struct StepBatch {
  std::span<const uint32_t> samples;  // the global batch
  const DropoutPlan* dropout = nullptr;
  float loss_scale = 1;
  double* losses = nullptr;  // backend memory, one for each of this process's shards
  // If set, called with each trained layer in the backward pass of the last micro-batch, once the
  // work that completes its gradient is started. For replayed passes only called when recording.
  std::function<void(int)> complete = {};
};

struct PassOptions {
  MicroBatching micro_batches;
  int64_t virtual_shards = 1;
  int lowest_layer = 0;
};

class StagePasses {
 public:
  // All arguments but the options must outlive this. `buckets`: as in GradientReduce::ready.
  // `max_losses`: of a micro-batch as it is computed. `sum` knows the chunks of the engine's part.
  StagePasses(Engine& engine, Objective& objective, GradientReduce& sum,
              const std::vector<Bucket>& buckets, int64_t max_losses, const PassOptions& options,
              StagePlan plan = {});

  // Runs forward and backward over this process's shards. Afterwards all shards are pushed, and the
  // sum of each shard's losses is written (zero if the stage has no head).
  void run(const StepBatch& step, const TouchedRows& touched);

 private:
  struct MicroBatch {
    int64_t shard = 0;  // among this process's shards, from 0
    IndexRange places;  // in places_
    bool first = false;
  };
  // The progress of a chunk in a step. Its backward passes come in the order of the shards. Other
  // chunks may be at earlier or later shards.
  struct Chunk {
    IndexRange elements;  // of the dense gradient
    bool has_backward = false;
    std::vector<int64_t> passes_left;  // backward passes of each shard
    int64_t shard = 0;                 // the first one not yet pushed
    float* leaf = nullptr;             // of that shard; null until a pass needs it
  };
  enum class Unit : int64_t { forward, backward, both };

  void cut(const StepBatch& step);
  void take(const PipelineAction& action);
  DeviceBatch& batch_in_slot(const PipelineAction& action);
  const PackedBatch& packed(int micro_batch);
  // Runs one unit of work. A device may replay a recorded one.
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
  std::shared_ptr<void> losses_;  // (1, losses of the largest micro-batch)

  // The state of the current step.
  StepBatch step_;
  const TouchedRows* touched_ = nullptr;
  std::vector<uint32_t> places_;  // in the global batch, in the order of the shards
  std::vector<MicroBatch> micro_batches_;
  std::vector<std::pair<int, int>> in_slot_;  // per slot: its micro-batch and chunk
  std::vector<Chunk> chunks_;
  std::vector<int64_t> lengths_;
  std::vector<uint32_t> samples_;
  PackedBatch packed_;
  int packed_micro_batch_ = -1;
};

}  // namespace finetune
