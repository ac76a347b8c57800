// BERT's forward and backward pass over encoder layers, embeddings and head.
#include "model/encoder.h"

#include <algorithm>
#include <vector>

#include "model/passes/convolution.h"
#include "model/passes/ends.h"
#include "model/passes/offloaded_inputs.h"
#include "model/passes/position_bias.h"
#include "model/passes/rotary_tables.h"

namespace finetune {

// Not in an anonymous namespace, since Encoder::State, which is not in one, has it as a field.
struct ChunkLayers {
  ModelChunk chunk;
  std::vector<std::vector<LayerSlots>> layers;  // the held tensor shards of each layer
};

struct Encoder::State {
  Backend& backend;
  EncoderConfig config;
  Head head;
  ModelPart part;
  EmbeddingEnd embedding_end;
  HeadEnd head_end;
  SharedPositionBias position_bias;
  Convolution convolution;
  std::vector<ChunkLayers> chunks;
  bool whole_layers = false;  // in inference
  std::unique_ptr<TensorSum> solo_sum;
  TensorSum* sum = nullptr;  // over tensor shards; null if there is one

  bool can_train = false, recompute = false, activated = false;
  int64_t slots = 1, slot_floats = 0;  // slot_floats: of each slot
  InputRing ring;                      // behind the slots
  std::shared_ptr<void> memory;
  int64_t reserved = 0;  // bytes
  RotaryTables rotary;
  std::unique_ptr<OffloadedInputs> offloaded;  // null: they stay in the block
  // The last kept forward of a whole model; kept_tokens 0: none.
  ActivationPlan kept;
  int64_t kept_tokens = 0, kept_sequences = 0;

  State(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
        const ModelPart& part, TensorSum* tensor_sum);

  const ModelChunk& chunk(int64_t index) const {
    FINETUNE_CHECK(index >= 0 && index < int64_t(chunks.size()));
    return chunks[size_t(index)].chunk;
  }
  bool first_only(const ModelChunk& of, int64_t layer) const {
    return of.head && config.reads_first_only(head.kind) && layer + 1 == of.layers.end;
  }
  float* block() const { return static_cast<float*>(memory.get()); }
  Tensor at(int64_t place, int64_t rows, int64_t cols) const {
    return place == kAbsent ? Tensor{} : matrix(block() + place, rows, cols);
  }
  int64_t state_rows(const DeviceBatch& batch) const {
    return batch.tokens() + carried_rows(config, part.tensor_shards, part.shards.size());
  }
  ActivationPlan training_plan(const ModelChunk& of, int64_t tokens, int64_t sequences,
                               bool recomputes, int64_t slot_at = 0, int64_t working_at = kAbsent,
                               int64_t scored = kAbsent) const {
    return ActivationPlan::training(config, head, of, backend, tokens, sequences, recomputes,
                                    slot_at, working_at, ring, scored, activated);
  }
  // Floats of the block; `training` is empty for inference only.
  int64_t block_floats(BatchSize training, BatchSize inference, bool recomputes, int64_t count,
                       int64_t horizon) const;
  ActivationPlan inference_plan(const ModelChunk& of, const DeviceBatch& batch, bool whole) const {
    return ActivationPlan::inference(config, head, of, backend.activation_type(), batch.tokens(),
                                     batch.sequences(), whole, batch.scored());
  }
  // The plan for the sizes of this micro-batch, so that a small one touches little memory.
  ActivationPlan plan(ChunkSlot at, const DeviceBatch& batch, bool whole) const;
  // `of`: the chunk that the layer is in.
  LayerPass pass(const ChunkLayers& of, int64_t layer, const DeviceBatch& batch,
                 const ActivationPlan& plan, const DropoutSites& sites,
                 const LayerBias& bias) const {
    const size_t index = size_t(layer - of.chunk.layers.begin);
    LayerPass pass{
        backend,           config, batch, of.layers[index], plan.layers[index], plan.partials,
        sites.layer(layer)};
    pass.tensor_shards = part.tensor_shards;
    pass.first_shard = part.shards.begin;
    pass.sum = sum;
    pass.first_only = first_only(of.chunk, layer);
    pass.memory = block();
    pass.bias = bias;
    if (config.relative.on()) pass.bias.relative_dropout = sites.relative(layer);
    pass.rotation = rotary.of_layer(config, layer);
    if (config.rotary.is_local(layer)) pass.window = config.rotary.window;
    return pass;
  }
  void forward(ChunkSlot at, const ActivationPlan& plan, const DeviceBatch& batch, float* weights,
               const DropoutPlan* dropout, bool whole) const;
};

Encoder::State::State(Backend& b, const EncoderConfig& c, const ParameterTable& table,
                      const ModelPart& of_model, TensorSum* tensor_sum)
    : backend(b),
      config(c),
      head(table.head()),
      part(of_model),
      whole_layers(has_whole_layers(b, c, of_model.tensor_shards)),
      sum(tensor_sum) {
  if (part.tensor_shards > 1 && !sum) {
    FINETUNE_CHECK(part.shards.size() == part.tensor_shards);
    solo_sum = make_solo_tensor_sum(part.tensor_shards);
    sum = solo_sum.get();
  }
  position_bias = SharedPositionBias(table, c, part, sum);
  if (part.embeddings) embedding_end = EmbeddingEnd(table, c);
  if (part.embeddings) convolution = Convolution(table, c);
  if (part.head) head_end = HeadEnd(table);
  for (size_t i = 0; i < part.chunks.size(); ++i) {
    ChunkLayers of{ModelChunk::of(part, int64_t(i)), {}};
    const IndexRange layers = of.chunk.layers;
    FINETUNE_CHECK(layers.size() > 0 && layers.end <= c.num_hidden_layers);
    for (int64_t l = layers.begin; l < layers.end; ++l) {
      std::vector<LayerSlots>& shards = of.layers.emplace_back();
      for (int64_t shard = part.shards.begin; shard < part.shards.end; ++shard) {
        shards.emplace_back(table, c.weights_layer(l), int(shard));
      }
    }
    chunks.push_back(std::move(of));
  }
}

// With one slot, working memory follows the results that this micro-batch keeps. With several slots
// or a ring all places are fixed, since other slots hold micro-batches of other sizes.
ActivationPlan Encoder::State::plan(ChunkSlot at, const DeviceBatch& batch, bool whole) const {
  const ModelChunk& of = chunk(at.chunk);
  const int64_t t = batch.tokens(), b = batch.sequences();
  ActivationPlan made;
  if (at.slot == ChunkSlot::kInference) {
    made = inference_plan(of, batch, whole);
  } else {
    FINETUNE_CHECK(can_train && at.slot >= 0 && at.slot < slots);
    const int64_t m = batch.scored();
    made = slots == 1 && !ring.on() ? training_plan(of, t, b, recompute, 0, kAbsent, m)
                                    : training_plan(of, t, b, recompute, at.slot * slot_floats,
                                                    slots * slot_floats + ring.floats(), m);
    FINETUNE_CHECK(made.kept <= slot_floats);
  }
  FINETUNE_CHECK(made.floats * int64_t(sizeof(float)) <= reserved);
  return made;
}

void Encoder::State::forward(ChunkSlot at, const ActivationPlan& plan, const DeviceBatch& batch,
                             float* weights, const DropoutPlan* dropout, bool whole) const {
  const ModelChunk& of = chunk(at.chunk);
  const DropoutSites sites(dropout, config);
  const EndPass ends{backend, config, batch, plan, sites, block(), weights};
  OffloadedInputs* waiting = at.slot == ChunkSlot::kInference ? nullptr : offloaded.get();
  const int64_t floats = state_rows(batch) * config.hidden_size;
  for (int64_t i = 0; waiting && of.embeddings && i <= plan.first_input; ++i) waiting->make_room(i);
  if (of.embeddings) embedding_end.forward(ends, at.slot != ChunkSlot::kInference);
  for (int64_t i = 0; waiting && i <= plan.first_input; ++i) waiting->written(at.slot, i, floats);
  const LayerBias bias = position_bias.forward(ends, of);
  for (int64_t l = of.layers.begin; l < of.layers.end; ++l) {
    const LayerPass layer = pass(chunks[size_t(at.chunk)], l, batch, plan, sites, bias);
    const int64_t next = plan.first_input + (l + 1 - of.layers.begin);
    const bool waits = waiting && next < plan.ring_tensors;
    if (waits) waiting->make_room(next);
    if (l == 0) convolution.begin(ends);
    whole ? whole_layer_forward(layer, weights) : layer_forward(layer, weights);
    if (l == 0) convolution.finish(ends, at.slot != ChunkSlot::kInference);
    if (waits) waiting->written(at.slot, next, floats);
  }
  if (of.head) head_end.forward(ends);
}

Encoder::Encoder(Backend& backend, const EncoderConfig& config, const ParameterTable& table)
    : Encoder(backend, config, table, table.part()) {}

Encoder::Encoder(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
                 const ModelPart& part, TensorSum* sum)
    : state_(std::make_unique<State>(backend, config, table, part, sum)) {}

Encoder::~Encoder() = default;

int64_t Encoder::activation_bytes(int64_t tokens, int64_t sequences, bool training, bool recompute,
                                  int64_t slots, int64_t horizon) const {
  const State& s = *state_;
  const BatchSize size{tokens, sequences}, of_training = training ? size : BatchSize{};
  return kFloatBytes *
         (s.block_floats(of_training, size, recompute, slots, horizon) +
          RotaryTables::floats(s.config, tokens) + RelativeTables::floats(s.config, tokens));
}

int64_t Encoder::State::block_floats(BatchSize training, BatchSize inference, bool recomputes,
                                     int64_t count, int64_t horizon) const {
  const int64_t floats =
      ActivationPlan::inference_floats(config, head, part, backend.activation_type(),
                                       inference.tokens, inference.sequences, whole_layers);
  if (training.tokens == 0) return floats;
  return std::max(floats, ActivationPlan::training_floats(
                              config, head, part, backend, training.tokens, training.sequences,
                              recomputes, count, horizon, activated && !recomputes));
}

void Encoder::reserve(BatchSize training, BatchSize inference, bool recompute, int64_t slots,
                      int64_t horizon, int64_t kept_bytes) {
  State& s = *state_;
  FINETUNE_CHECK(slots >= 1 && (horizon == 0 || recompute));
  s.can_train = training.tokens > 0;
  s.recompute = recompute;
  s.slots = slots;
  s.slot_floats = s.kept_tokens = s.kept_sequences = 0;
  s.activated =
      ActivationPlan::keeps_activated(s.config, s.head, s.part, s.backend, training.tokens,
                                      training.sequences, recompute, slots, kept_bytes);
  s.offloaded.reset();
  s.memory.reset();
  s.ring = s.can_train ? InputRing::make(s.config, s.head, s.part, training.tokens, slots, horizon)
                       : InputRing{};
  s.reserved = s.block_floats(training, inference, recompute, slots, horizon) * kFloatBytes;
  if (s.can_train) {
    for (const ChunkLayers& of : s.chunks) {
      const auto plan = s.training_plan(of.chunk, training.tokens, training.sequences, recompute);
      s.slot_floats = std::max(s.slot_floats, plan.kept);
    }
  }
  s.memory = s.backend.allocate(size_t(s.reserved));
  const int64_t most = std::max(training.tokens, inference.tokens);
  ScratchSizes scratch = scratch_sizes(s.config, s.backend.compute_type(), training.tokens, most);
  // Offloaded inputs and sums with other tensor ranks would make the streams wait for each other.
  if (s.can_train && !s.ring.on() && !s.part.shares_layers() && s.backend.has_second_stream()) {
    s.backend.reserve_second_stream(second_stream_limits(s.config, training.tokens));
    scratch.right = 0;  // it has its own
  }
  s.backend.reserve_scratch(scratch);
  s.rotary = RotaryTables(s.backend, s.config, most);
  s.position_bias.reserve(s.backend, s.config, most);
  if (!s.ring.on()) return;
  s.ring.at = slots * s.slot_floats;
  s.offloaded = std::make_unique<OffloadedInputs>(s.backend, s.ring, slots, s.block());
}

int64_t Encoder::offloaded_bytes() const {
  const State& s = *state_;
  return s.ring.on() ? s.ring.host_floats(s.slots) * int64_t(sizeof(float)) : 0;
}

void Encoder::make_room_for_input(ChunkSlot at, const DeviceBatch& batch) {
  const State& s = *state_;
  if (s.offloaded) s.offloaded->make_room(s.plan(at, batch, false).first_input);
}

Tensor Encoder::input_of(ChunkSlot at, const DeviceBatch& batch) const {
  const State& s = *state_;
  const int64_t place = s.plan(at, batch, s.whole_layers).layers.front().input;
  return s.at(place, s.state_rows(batch), s.config.hidden_size);
}

Tensor Encoder::output_of(ChunkSlot at, const DeviceBatch& batch) const {
  const State& s = *state_;
  const ActivationPlan plan = s.plan(at, batch, s.whole_layers);
  if (has_head(at.chunk)) return s.at(plan.logits, logit_rows(s.head, batch), s.head.outputs);
  return s.at(plan.layers.back().output, s.state_rows(batch), s.config.hidden_size);
}

Tensor Encoder::gradient_of_output(ChunkSlot at, const DeviceBatch& batch) const {
  const State& s = *state_;
  return s.at(s.plan(at, batch, false).gradient, s.state_rows(batch), s.config.hidden_size);
}

bool Encoder::may_be_replayed(int64_t slot) const {
  const State& s = *state_;
  return (!s.sum || s.sum->may_be_replayed()) && (slot == ChunkSlot::kInference || !s.offloaded);
}

bool Encoder::has_head(int64_t chunk) const {
  return state_->chunk(chunk).head;
}

bool Encoder::has_embeddings(int64_t chunk) const {
  return state_->chunk(chunk).embeddings;
}

bool Encoder::has_backward(int64_t chunk, int lowest_layer) const {
  const ModelChunk& of = state_->chunk(chunk);
  return lowest_layer <= of.layers.end + of.head;
}

bool Encoder::passes_gradient_on(int64_t chunk, int lowest_layer) const {
  const ModelChunk& of = state_->chunk(chunk);
  return !of.embeddings && lowest_layer <= of.layers.begin;
}

void Encoder::forward(ChunkSlot at, const DeviceBatch& batch, float* weights,
                      const DropoutPlan* dropout) {
  const State& s = *state_;
  // The backend's operations for whole layers have no dropout.
  const bool whole = s.whole_layers && at.slot == ChunkSlot::kInference && dropout == nullptr;
  s.forward(at, s.plan(at, batch, whole), batch, weights, dropout, whole);
}

Tensor Encoder::forward(const DeviceBatch& batch, float* weights, const DropoutPlan* dropout,
                        bool keep_for_backward) {
  State& s = *state_;
  const ChunkSlot at{0, keep_for_backward ? 0 : ChunkSlot::kInference};
  FINETUNE_CHECK(s.chunk(0).embeddings && s.chunk(0).head);
  const bool whole = s.whole_layers && !keep_for_backward && dropout == nullptr;
  const ActivationPlan plan = s.plan(at, batch, whole);
  s.kept_tokens = keep_for_backward ? batch.tokens() : 0;
  s.kept_sequences = keep_for_backward ? batch.sequences() : 0;
  s.forward(at, plan, batch, weights, dropout, whole);
  if (keep_for_backward) s.kept = plan;
  return s.at(plan.logits, logit_rows(s.head, batch), s.head.outputs);
}

void Encoder::backward(const DeviceBatch& batch, float* weights, float* gradients, Tensor dlogits,
                       const DropoutPlan* dropout, int lowest_layer, bool accumulate,
                       const std::function<void(int)>& ready) {
  const State& s = *state_;
  FINETUNE_CHECK(s.kept_tokens == batch.tokens() && s.kept_sequences == batch.sequences());
  backward({0, 0}, batch, weights, gradients, dlogits, dropout, lowest_layer, accumulate, ready);
}

void Encoder::backward(ChunkSlot at, const DeviceBatch& batch, float* weights, float* gradients,
                       Tensor dlogits, const DropoutPlan* dropout, int lowest_layer,
                       bool accumulate, const std::function<void(int)>& ready) {
  const State& s = *state_;
  if (!has_backward(at.chunk, lowest_layer)) return;
  const ModelChunk& of = s.chunk(at.chunk);
  const ActivationPlan plan = s.plan(at, batch, false);
  const DropoutSites sites(dropout, s.config);
  const EndPass ends{s.backend, s.config, batch, plan, sites, s.block(), weights};
  auto is_ready = [&](int64_t layer) {
    if (ready && layer >= lowest_layer) ready(int(layer));
  };
  OffloadedInputs* waiting = s.offloaded.get();
  const int64_t lowest =
      lowest_layer > 0 || !of.embeddings
          ? plan.first_input + std::max<int64_t>(0, lowest_layer - 1 - of.layers.begin)
          : 0;
  if (waiting) {
    waiting->begin(at.slot, {std::min(lowest, plan.ring_tensors), plan.ring_tensors},
                   s.state_rows(batch) * s.config.hidden_size);
  }
  auto need = [&](int64_t tensor) {
    if (waiting && tensor < plan.ring_tensors) waiting->need(tensor);
  };
  auto done = [&](int64_t tensor) {
    if (waiting && tensor < plan.ring_tensors) waiting->done(tensor);
  };
  if (of.head) {
    const int64_t output = plan.first_input + of.layers.size();
    need(output);
    const bool all = plan.first_gradient == kAbsent;
    const Tensor top = s.at(all ? plan.gradient : plan.first_gradient,
                            all ? batch.tokens() : batch.sequences(), s.config.hidden_size);
    const bool goes_on = lowest_layer <= of.layers.end;
    s.head_end.backward(ends, gradients, dlogits, goes_on ? top : Tensor{}, accumulate);
    done(output);
    is_ready(of.layers.end + 1);
  }
  LayerBias bias = s.position_bias.before_backward(ends, of, lowest_layer == 0);
  for (int64_t l = of.layers.end; l-- > of.layers.begin && l + 1 >= lowest_layer;) {
    bias.accumulate = l + 1 < s.config.num_hidden_layers;
    const LayerGradients offsets = LayerGradients::of(plan, s.first_only(of, l));
    LayerPass pass = s.pass(s.chunks[size_t(at.chunk)], l, batch, plan, sites, bias);
    // Layers that share weights add their gradients from the top down.
    pass.accumulate = accumulate || s.config.shares_above(l);
    // The last layer still has the results of its forward pass, unless another pass came between.
    const int64_t input = plan.first_input + (l - of.layers.begin);
    need(input);
    if (s.recompute && (l + 1 < of.layers.end || s.slots > 1)) {
      // The output is not read again, and its place in the ring may hold another tensor by now.
      LayerOffsets again = pass.offsets;
      if (waiting && input + 1 < plan.ring_tensors) again.output = plan.spare_output;
      layer_forward(pass.with(again), weights);
    }
    if (l == 0) s.convolution.backward(ends, gradients, accumulate);
    layer_backward(pass, offsets, weights, gradients, l >= lowest_layer);
    if (l == 0 && l >= lowest_layer) s.convolution.add_input_gradient(ends);
    done(input);
    is_ready(l + 1);
  }
  if (lowest_layer > 0 || !of.embeddings) return;
  need(0);
  s.position_bias.after_backward(ends, gradients, accumulate);
  s.embedding_end.backward(ends, gradients, accumulate);
  is_ready(0);
}

Tensor Encoder::hidden_state(int64_t i) const {
  const State& s = *state_;
  FINETUNE_CHECK(s.kept_tokens > 0 && i >= 0 && i <= s.config.num_hidden_layers);
  if (i == 0) return s.at(s.kept.layers[0].input, s.kept_tokens, s.config.hidden_size);
  const bool first_only = s.first_only(s.chunk(0), i - 1);
  return s.at(s.kept.layers[size_t(i - 1)].output, first_only ? s.kept_sequences : s.kept_tokens,
              s.config.hidden_size);
}

}  // namespace finetune
