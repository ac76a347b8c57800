// Executes a stage's forward passes over micro-batches, and sends activations to the next stage.
#include "inference/replica_stages.h"

#include "core/error.h"
#include "distributed/pipeline/pipeline_simulation.h"

namespace finetune {
namespace {

constexpr int kMicroBatchesOfStage = 4;

// Links of each stage to the next; with several chunks a stage also of the last to the first.
std::vector<LinkEnds> ends_of(int stages, bool ring, size_t capacity) {
  std::vector<LinkEnds> ends;
  for (int stage = 0; stage + 1 < stages; ++stage) ends.push_back({stage, stage + 1, capacity});
  if (ring && stages > 1) ends.push_back({stages - 1, 0, capacity});
  return ends;
}

PipelineShape forward_only(int stages, int chunks, int micro_batches) {
  PipelineShape shape;
  shape.kind = chunks > 1 ? PipelineKind::interleaved : PipelineKind::one_f_one_b;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.micro_batches = micro_batches;
  shape.lowest_block = shape.blocks();
  return shape;
}

size_t capacity_of(const Engine& engine) {
  return size_t(state_floats(engine.config(), ModelChunk::of(engine.part(), 0),
                             engine.inference_size().tokens)) *
         sizeof(float);
}

}  // namespace

ReplicaStages::ReplicaStages(Engine& engine, const LayoutGroups& groups, GroupPeers* peers)
    : engine_(engine), groups_(groups) {
  const int stages = layout().pp(), stage = groups.place().p;
  const ModelPart& part = engine.part();
  FINETUNE_CHECK(part.embeddings == (stage == 0) && part.head == (stage + 1 == stages));
  const std::vector<LinkEnds> ends = ends_of(stages, part.chunks.size() > 1, capacity_of(engine));
  if (ends.empty()) return;
  if (peers) {
    const auto sent = DeviceMessages::sent_by(stage, stages, int(part.chunks.size()));
    devices_ = std::make_unique<DeviceMessages>(engine.backend(), *peers,
                                                DeviceMessages::Directions{sent.activations, false},
                                                int64_t(capacity_of(engine) / sizeof(float)));
    return;
  }
  tensors_.emplace(engine.backend(), capacity_of(engine));
  std::vector<std::unique_ptr<Link>> links = groups.pipeline().make_links(ends);
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].from == stage) to_next_ = std::move(links[i]);
    if (ends[i].to == stage) from_previous_ = std::move(links[i]);
  }
}

int ReplicaStages::in_flight() const {
  return layout().pp() == 1 ? 1 : kMicroBatchesOfStage * layout().pp();
}

int ReplicaStages::source_of_logits(int replica) const {
  return layout().rank_of({replica, layout().pp() - 1, 0});
}

void ReplicaStages::infer(std::span<const PackedBatch> batches, std::vector<float>& logits) {
  logits.clear();
  const bool source = source_of_logits(groups_.place().d) == world().rank();
  const Encoder& encoder = engine_.encoder();
  const DeviceBatch* batch = nullptr;
  int uploaded = -1;
  const PipelineShape shape =
      forward_only(layout().pp(), int(engine_.part().chunks.size()), int(batches.size()));
  if (devices_) devices_->begin(message_order(shape, groups_.place().p));
  for (const PipelineAction& action : pipeline_actions(shape, groups_.place().p)) {
    if (action.micro != uploaded) {
      uploaded = action.micro;
      batch = &engine_.upload_for_inference(batches[size_t(action.micro)]);
    }
    const ChunkSlot at{action.chunk, ChunkSlot::kInference};
    switch (action.kind) {
      case PipelineAction::Kind::receive_activation:
        receive(action, encoder.input_of(at, *batch));
        break;
      case PipelineAction::Kind::send_activation:
        send(action, encoder.output_of(at, *batch));
        break;
      default:
        FINETUNE_CHECK(action.kind == PipelineAction::Kind::forward);
        engine_.infer_chunk(action.chunk, *batch);
        if (source && encoder.has_head(action.chunk)) {
          engine_.append_logits(batches[size_t(action.micro)], *batch, logits);
        }
    }
  }
  if (devices_) devices_->end();
  // Finish the device's sends, for which other stages may wait; downloading logits does this, too.
  if (!source) engine_.backend().synchronize();
  before_ += int64_t(batches.size());
}

LinkMessage ReplicaStages::message(const PipelineAction& action) const {
  return {"activations of micro-batch", before_ + action.micro};
}

void ReplicaStages::receive(const PipelineAction& action, Tensor into) {
  if (devices_) return devices_->receive(action, into);
  FINETUNE_CHECK(from_previous_ != nullptr);
  tensors_->receive(*from_previous_, into, message(action));
}

void ReplicaStages::send(const PipelineAction& action, Tensor from) {
  if (devices_) return devices_->send(action, from);
  FINETUNE_CHECK(to_next_ != nullptr);
  tensors_->send(*to_next_, from, message(action));
}

}  // namespace finetune
