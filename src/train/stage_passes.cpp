// Executes a stage's actions: packs micro-batches, computes passes, sends and receives.
#include "train/stage_passes.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "data/packing.h"

namespace finetune {

std::vector<PipelineAction> StagePlan::one_stage(int64_t micro_batches) {
  std::vector<PipelineAction> actions;
  for (int i = 0; i < int(micro_batches); ++i) {
    actions.push_back({PipelineAction::Kind::forward, i});
    actions.push_back({PipelineAction::Kind::backward, i});
  }
  return actions;
}

StagePasses::StagePasses(Engine& engine, Objective& objective, GradientReduce& sum,
                         const std::vector<Bucket>& buckets, int64_t max_losses,
                         const PassOptions& options, StagePlan plan)
    : engine_(engine),
      objective_(objective),
      sum_(sum),
      buckets_(buckets),
      options_(options),
      plan_(std::move(plan)),
      losses_(engine.backend().allocate(size_t(max_losses) * sizeof(float))) {
  for (IndexRange elements : elements_of_chunks(engine.table())) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.elements = elements;
    chunk.has_backward =
        engine.encoder().has_backward(int64_t(chunks_.size()) - 1, options.lowest_layer);
  }
}

// Cuts this process's shards into micro-batches. A shard may have none.
void StagePasses::cut(const StepBatch& step) {
  const SampleView& samples = objective_.samples();
  const int64_t count = int64_t(step.samples.size());
  lengths_.clear();
  for (uint32_t index : step.samples) lengths_.push_back(samples.length(index));
  places_ = shard_order(lengths_, options_.virtual_shards);
  micro_batches_.clear();
  for (Chunk& chunk : chunks_) chunk.passes_left.clear();
  std::vector<int64_t>& of_shard = lengths_;
  for (int64_t k = sum_.shards().begin; k < sum_.shards().end; ++k) {
    const IndexRange shard = finetune::part(count, options_.virtual_shards, k);
    of_shard.clear();
    for (int64_t i = shard.begin; i < shard.end; ++i) {
      of_shard.push_back(samples.length(step.samples[places_[size_t(i)]]));
    }
    const std::vector<IndexRange> runs = finetune::micro_batches(of_shard, options_.micro_batches);
    for (const IndexRange& run : runs) {
      micro_batches_.push_back({k - sum_.shards().begin,
                                {shard.begin + run.begin, shard.begin + run.end},
                                &run == &runs.front()});
    }
    for (Chunk& chunk : chunks_) {
      chunk.passes_left.push_back(chunk.has_backward ? int64_t(runs.size()) : 0);
    }
    // If no pass of this stage computes the loss, the shard's loss is zero.
    if (runs.empty() || !engine_.part().head) {
      engine_.backend().add_losses(losses(0), {}, false, step_.losses + (k - sum_.shards().begin));
    }
  }
}

void StagePasses::run(const StepBatch& step, const TouchedRows& touched) {
  step_ = step;
  touched_ = &touched;
  for (Chunk& chunk : chunks_) {
    chunk.shard = 0;
    chunk.leaf = nullptr;
  }
  in_slot_.assign(size_t(engine_.slots()), {-1, -1});
  packed_micro_batch_ = -1;
  cut(step);
  const std::vector<PipelineAction> actions = plan_.actions(int64_t(micro_batches_.size()));
  if (plan_.links) plan_.links->begin(int64_t(micro_batches_.size()));
  for (size_t i = 0; i < actions.size(); ++i) {
    PipelineAction next = actions[i];
    next.kind = PipelineAction::Kind::backward;
    // A forward pass that its backward pass follows at once is computed as one unit.
    if (!plan_.record && actions[i].kind == PipelineAction::Kind::forward &&
        i + 1 < actions.size() && actions[i + 1] == next) {
      compute(Unit::both, actions[i++]);
    } else {
      take(actions[i]);
    }
  }
  if (plan_.links) plan_.links->end();
  for (int chunk = 0; chunk < int(chunks_.size()); ++chunk) {
    push_empty(chunk);
    FINETUNE_CHECK(chunks_[size_t(chunk)].shard == sum_.shards().size());
  }
}

void StagePasses::take(const PipelineAction& action) {
  using enum PipelineAction::Kind;
  if (action.kind == forward || action.kind == backward) {
    const double start = plan_.record ? seconds_now(Clock::cpu) : 0;
    compute(action.kind == forward ? Unit::forward : Unit::backward, action);
    if (plan_.record) plan_.record(action, seconds_now(Clock::cpu) - start);
    return;
  }
  FINETUNE_CHECK(plan_.links != nullptr);
  Encoder& encoder = engine_.encoder();
  const DeviceBatch& batch = batch_in_slot(action);
  const ChunkSlot at{action.chunk, action.slot};
  switch (action.kind) {
    case receive_activation:
      encoder.make_room_for_input(at, batch);
      return plan_.links->receive(action, encoder.input_of(at, batch));
    case send_activation:
      return plan_.links->send(action, encoder.output_of(at, batch));
    case receive_gradient:
      return plan_.links->receive(action, encoder.gradient_of_output(at, batch));
    default:
      return plan_.links->send(action, encoder.gradient_of_input(at, batch));
  }
}

// Each stage packs micro-batches itself: all stages have the samples.
DeviceBatch& StagePasses::batch_in_slot(const PipelineAction& action) {
  std::pair<int, int>& there = in_slot_.at(size_t(action.slot));
  if (there == std::pair(action.micro, action.chunk)) return engine_.batch(action.slot);
  FINETUNE_CHECK(action.kind == PipelineAction::Kind::receive_activation ||
                 action.kind == PipelineAction::Kind::forward);
  there = {action.micro, action.chunk};
  return engine_.upload(packed(action.micro), step_.loss_scale, action.slot);
}

const PackedBatch& StagePasses::packed(int micro_batch) {
  if (packed_micro_batch_ == micro_batch) return packed_;
  packed_micro_batch_ = micro_batch;
  const IndexRange range = micro_batches_.at(size_t(micro_batch)).places;
  const auto places = std::span(places_).subspan(size_t(range.begin), size_t(range.size()));
  samples_.clear();
  for (uint32_t place : places) samples_.push_back(step_.samples[place]);
  pack(objective_.samples(), samples_, places, packed_);
  objective_.complete(packed_);
  if (engine_.backend().replays()) fill_up(packed_);
  return packed_;
}

// Values that differ between micro-batches of one shape or between steps are uploaded before. The
// other inputs of the work are in the key, or are constant during the run.
void StagePasses::compute(Unit unit, const PipelineAction& action) {
  Backend& backend = engine_.backend();
  Encoder& encoder = engine_.encoder();
  const MicroBatch& micro = micro_batches_.at(size_t(action.micro));
  const ChunkSlot at{action.chunk, action.slot};
  DeviceBatch& batch = batch_in_slot(action);
  const bool head = encoder.has_head(at.chunk), backward = unit != Unit::forward;
  const bool scores = head && unit != Unit::backward;
  if (scores) objective_.upload_targets(backend, packed(action.micro));
  float* weights = engine_.weights_as_they_are();
  float* gradients = backward ? gradients_for(action.chunk, micro.shard) : nullptr;
  const bool accumulate = !micro.first;  // else it overwrites an older gradient
  const int64_t count = objective_.losses(batch);
  const bool last =
      backward && step_.complete && action.micro + 1 == int64_t(micro_batches_.size());
  const auto work = [&] {
    if (unit != Unit::backward) encoder.forward(at, batch, weights, step_.dropout);
    const Tensor logits = head ? encoder.output_of(at, batch) : Tensor{};
    if (scores) objective_.loss(backend, batch, logits, losses(count), logits);
    if (!backward) return;
    encoder.backward(at, batch, weights, gradients, logits, step_.dropout, options_.lowest_layer,
                     accumulate, [&](int layer) {
                       sum_.ready(layer);
                       if (last) step_.complete(layer);
                       advance();
                     });
  };
  const int64_t key[] = {int64_t(unit),
                         at.chunk,
                         at.slot,
                         batch.tokens(),
                         batch.sequences(),
                         batch.segments().max_length,
                         batch.scored(),
                         int64_t(reinterpret_cast<intptr_t>(gradients)),
                         backward && accumulate,
                         last};
  advance();
  engine_.replay(at.slot, key, work);
  advance();
  if (scores) {
    backend.add_losses(losses(count), batch.loss_weights(), accumulate, step_.losses + micro.shard);
  }
  if (backward) pass_done(action.chunk, micro.shard);
}

float* StagePasses::gradients_for(int chunk, int64_t shard) {
  push_empty(chunk);
  Chunk& at = chunks_[size_t(chunk)];
  FINETUNE_CHECK(shard == at.shard);
  if (!at.leaf) at.leaf = sum_.leaf(chunk);
  return at.leaf;
}

void StagePasses::pass_done(int chunk, int64_t shard) {
  Chunk& at = chunks_[size_t(chunk)];
  if (--at.passes_left[size_t(shard)] > 0) return;
  sum_.push(*touched_, chunk);
  at.leaf = nullptr;
  ++at.shard;
}

// Pushes zeros for shards without a backward pass here, up to the next shard that has one.
void StagePasses::push_empty(int chunk) {
  Chunk& at = chunks_[size_t(chunk)];
  for (; at.shard < sum_.shards().size() && at.passes_left[size_t(at.shard)] == 0; ++at.shard) {
    engine_.backend().fill_zero(vector(sum_.leaf(chunk) + at.elements.begin, at.elements.size()));
    for (const Bucket& bucket : buckets_) sum_.ready(bucket.layer);
    sum_.push(*touched_, chunk);
  }
}

}  // namespace finetune
