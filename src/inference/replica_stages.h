// Inference on a replica's pipeline stages: micro-batches pass through them one after the other.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/link.h"
#include "core/numeric/packed_batch.h"
#include "distributed/device/device_messages.h"
#include "distributed/device/tensor_links.h"
#include "distributed/layout/layout_groups.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "engine/engine.h"

namespace finetune {

class ReplicaStages {
 public:
  // Collective over the stages of each replica, once the engine has its buffers. The engine's part
  // is this process's stage; engine, groups and peers must outlive this. `peers` connects stages
  // that each have their own device; else null. Error(device): see make_links().
  ReplicaStages(Engine& engine, const LayoutGroups& groups, GroupPeers* peers = nullptr);

  const Layout& layout() const { return groups_.layout(); }
  Communicator& world() const { return groups_.world(); }
  // The number of micro-batches that a replica takes at once, enough that stages seldom wait.
  int in_flight() const;
  // The rank of the world whose infer() returns a replica's logits.
  int source_of_logits(int replica) const;

  // Called by all stages of a replica with the same micro-batches. Sets `logits` to those of all
  // micro-batches in order, each as from Engine::infer(); empty except on source_of_logits().
  void infer(std::span<const PackedBatch> batches, std::vector<float>& logits);

 private:
  LinkMessage message(const PipelineAction& action) const;
  void receive(const PipelineAction& action, Tensor into);
  void send(const PipelineAction& action, Tensor from);

  Engine& engine_;
  const LayoutGroups& groups_;
  std::unique_ptr<Link> from_previous_, to_next_;
  std::optional<TensorLinks> tensors_;       // without peers
  std::unique_ptr<DeviceMessages> devices_;  // with peers
  int64_t before_ = 0;                       // micro-batches of earlier calls
};

}  // namespace finetune
