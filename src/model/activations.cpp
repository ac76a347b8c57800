// Offsets of every activation of a training pass, with recompute, and of inference.
#include "model/activations.h"

#include <algorithm>

#include "core/error.h"
#include "model/positions/position_plan.h"

namespace finetune {
namespace {

void add_head(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config, Head head,
              int64_t tokens, int64_t sequences, int64_t scored) {
  const int64_t h = config.hidden_size, e = config.embedding_size();
  const int64_t rows = head.kind == HeadKind::sequence ? sequences : tokens;
  switch (head.kind) {
    case HeadKind::sequence:
    case HeadKind::token:
      if (head.kind == HeadKind::sequence && config.head.mean) plan.mean = memory.take(rows * h);
      if (config.has_dense(head.kind)) {
        plan.pooler_input = memory.take(rows * h);
        if (config.head.norm) {
          plan.head_sum = memory.take(rows * h);
          plan.head_stats = memory.take(rows * 2);
        }
        plan.pooled = memory.take(rows * h);
      }
      plan.logits = memory.take(rows * head.outputs);
      return;
    case HeadKind::masked:
      plan.scored = memory.take(scored * h);
      for (int64_t* place : {&plan.transformed, &plan.scored_sum, &plan.scored_states}) {
        *place = memory.take(scored * e);
      }
      plan.scored_stats = memory.take(scored * 2);
      plan.logits = memory.take(scored * head.outputs);
  }
}

bool first_tokens_only(const EncoderConfig& config, const ModelChunk& chunk, Head head) {
  return chunk.head && config.reads_first_only(head.kind);
}

// Takes memory for the output and the statistics of the norm after the last layer.
void take_final_norm(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                     const ModelChunk& chunk, int64_t rows) {
  if (!chunk.head || !config.layer.norm_before) return;
  plan.final_normed = memory.take(rows * config.hidden_size);
  plan.final_stats = memory.take(rows * 2);
}

// Dropout writes to a copy, since the encoder's output may be on its way to the host (InputRing).
void take_dropped(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config, Head head,
                  const ModelChunk& chunk, int64_t tokens) {
  if (!chunk.head || head.kind != HeadKind::token || !config.head.token_dropout) return;
  plan.dropped = memory.take(tokens * config.hidden_size);
}

void take_projected(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                    int64_t tokens) {
  if (config.has_projection()) plan.projected = memory.take(tokens * config.embedding_size());
}

int64_t ring_tensors_of(const EncoderConfig& config, const ModelChunk& chunk, Head head) {
  const bool output = chunk.head && !config.reads_first_only(head.kind);
  return chunk.embeddings + chunk.layers.size() + output;
}

// Takes memory for a layer's results between its input and its output; take_first() has those of
// first tokens. `normed`: with a norm before attention. `activated`: keep the activation's result.
LayerOffsets take_results(Allocator& memory, const EncoderConfig& config, const ModelChunk& chunk,
                          ActivationForm form, int64_t tokens, int64_t sequences, bool first_only,
                          bool normed, bool activated = false) {
  const int64_t h = config.hidden_size, v = chunk.tensor_shards;
  const int64_t rows = first_only ? sequences : tokens;
  LayerOffsets offsets;
  if (normed) {
    offsets.normed = memory.take(tokens * h);
    offsets.normed_rounded = memory.take_rounded(tokens * h);
    offsets.normed_stats = memory.take(tokens * 2);
  }
  offsets.shards.resize(size_t(chunk.held_shards));
  for (ShardOffsets& shard : offsets.shards) {
    shard.qkv = memory.take_typed(tokens * (first_only ? 2 : 3) * h / v);
    shard.context = memory.take_typed(rows * h / v);
    shard.log_sums = memory.take(config.num_attention_heads / v * rows);
    const int64_t mask = form.mask_floats(config, v, rows, tokens);
    if (mask > 0) shard.mask = memory.take(mask);
  }
  offsets.attention_sum = memory.take(rows * h);
  offsets.attention_stats = memory.take(rows * 2);
  offsets.middle = memory.take(rows * h);
  offsets.middle_rounded = memory.take_rounded(rows * h);
  for (ShardOffsets& shard : offsets.shards) {
    shard.inner = memory.take_typed(rows * config.inner_rows() / v);
    if (activated) shard.activated = memory.take_typed(rows * config.intermediate_size / v);
  }
  if (config.layer.norm_before) {
    offsets.stream = offsets.attention_sum;  // the norm that follows adds the input in place
    return offsets;
  }
  offsets.output_sum = memory.take(rows * h);
  offsets.output_stats = memory.take(rows * 2);
  return offsets;
}

void take_first(Allocator& memory, int64_t rows, int64_t h, int64_t tensor_shards,
                LayerOffsets& offsets) {
  offsets.first = memory.take(rows * h);
  if (offsets.normed != kAbsent) offsets.first_normed = memory.take(rows * h);
  for (ShardOffsets& shard : offsets.shards) {
    shard.first_query = memory.take_typed(rows * h / tensor_shards);
  }
}

// Gives all layers the same offsets for their results.
void share_results(ActivationPlan& plan, const LayerOffsets& results) {
  for (LayerOffsets& layer : plan.layers) {
    LayerOffsets shared = results;
    shared.input = layer.input;
    shared.output = layer.output;
    layer = shared;
  }
}

// Takes memory for the held shards' partials; for the first only if `first_too` (else: the sum's).
std::vector<int64_t> take_partials(Allocator& memory, const ModelChunk& chunk, int64_t floats,
                                   bool first_too) {
  std::vector<int64_t> places;
  if (chunk.tensor_shards == 1) return places;
  for (int64_t i = 0; i < chunk.held_shards; ++i) {
    places.push_back(i > 0 || first_too ? memory.take(floats) : kAbsent);
  }
  return places;
}

void take_gradients(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                    const ModelChunk& chunk, ActivationForm form, int64_t tokens, int64_t sequences,
                    int64_t scored, int64_t head_rows, bool first_only, bool all_first_only) {
  const int64_t h = config.hidden_size, inner = config.intermediate_size, v = chunk.tensor_shards;
  // The largest R of the chunk's layers.
  const int64_t rows = all_first_only ? sequences : std::max(tokens, sequences);
  plan.gradient = memory.take(state_floats(config, chunk, tokens));
  if (config.layer.position_bias) {
    plan.bias_gradient = memory.take(config.num_attention_heads / v * 2 * tokens);
  }
  if (config.layer.norm_before) plan.normed_gradient = memory.take(tokens * h);
  if (plan.mean != kAbsent) plan.mean_gradient = memory.take(sequences * h);
  if (chunk.embeddings && config.has_projection()) {
    plan.projected_gradient = memory.take(tokens * config.embedding_size());
  }
  if (first_only) {
    plan.first_gradient = memory.take(sequences * h);
    plan.query_gradient = memory.take_typed(sequences * h / v);
    plan.partials.first = take_partials(memory, chunk, sequences * h, true);
  }
  // The head's gradient, which uses the same place, and branches behind a norm are f32.
  const int64_t branch = config.layer.norm_before ? rows * h : memory.floats_of(rows * h);
  plan.branch_gradient = memory.take(std::max({branch, sequences * h, scored * h, head_rows * h}));
  plan.context_gradient = memory.take_typed(rows * h / v);
  const int64_t qkv = std::max(rows * 3 * h, tokens * 2 * h) / v;
  // Weight gradients on the second stream still read them while the next block writes its own.
  if (form.second_stream && memory.is_rounded()) {
    plan.wide_gradient = memory.take_typed(rows * inner / v);
    plan.attention_branch_gradient =
        config.layer.norm_before ? plan.branch_gradient : memory.take(branch);
    plan.qkv_gradient = memory.take_typed(qkv);
  } else {
    plan.wide_gradient = memory.take_typed(std::max(rows * inner / v, qkv));
    plan.attention_branch_gradient = plan.branch_gradient;
    plan.qkv_gradient = plan.wide_gradient;
  }
  plan.partials.all = take_partials(memory, chunk, std::max(tokens, sequences) * h, true);
}

}  // namespace

ModelChunk ModelChunk::of(const ModelPart& part, int64_t chunk) {
  return {part.chunks[size_t(chunk)], part.embeddings && chunk == 0,
          part.head && chunk + 1 == int64_t(part.chunks.size()), part.tensor_shards,
          part.shards.size()};
}

SecondStreamLimits second_stream_limits(const EncoderConfig& config, int64_t tokens) {
  const int64_t h = config.hidden_size;
  return {tokens, h, std::max(3 * h, config.inner_rows())};
}

ScratchSizes scratch_sizes(const EncoderConfig& config, DType type, int64_t tokens, int64_t most) {
  const auto [rows, h, wide] = second_stream_limits(config, tokens);
  const int64_t rounded = type == DType::bf16 ? (h + 7) / 8 * 8 * 2 : 0;  // bytes of a row
  return {most * rounded, rows * rounded, sum_floats(rows, h, wide) * kFloatBytes,
          config.num_attention_heads * rows * kFloatBytes};
}

InputRing InputRing::make(const EncoderConfig& config, Head head, const ModelPart& part,
                          int64_t tokens, int64_t slots, int64_t horizon) {
  InputRing ring;
  if (horizon == 0) return ring;
  for (int64_t c = 0; c < int64_t(part.chunks.size()); ++c) {
    ring.tensors = std::max(ring.tensors, ring_tensors_of(config, ModelChunk::of(part, c), head));
  }
  if (slots == 1 && horizon + 1 >= ring.tensors) return {};
  ring.places = std::min(horizon + 1, ring.tensors);
  ring.stride = (state_floats(config, ModelChunk::of(part, 0), tokens) + 15) / 16 * 16;
  return ring;
}

ActivationPlan ActivationPlan::training(const EncoderConfig& config, Head head,
                                        const ModelChunk& chunk, ActivationForm form,
                                        int64_t tokens, int64_t sequences, bool recompute,
                                        int64_t slot_at, int64_t working_at, const InputRing& ring,
                                        int64_t scored, bool activated) {
  FINETUNE_CHECK(recompute ? !activated : !ring.on());
  FINETUNE_CHECK(!activated || !config.layer.gated);
  const int64_t h = config.hidden_size, count = chunk.layers.size();
  if (scored == kAbsent) scored = tokens;
  const bool first_tokens = first_tokens_only(config, chunk, head);
  const bool norm_before = config.layer.norm_before;
  ActivationPlan plan;
  Allocator slot(form.type, slot_at);
  // `received`: with the carried_rows() that the stage below sends behind it.
  auto take_input = [&](bool received = false) {
    return ring.on() ? ring.of(plan.ring_tensors++)
                     : slot.take(received ? state_floats(config, chunk, tokens) : tokens * h);
  };
  if (chunk.embeddings) {
    plan.embedding_sum = take_input();
    plan.embedding_stats = slot.take(tokens * 2);
    take_projected(plan, slot, config, tokens);
  }
  take_bias_table(plan, slot, config, chunk);
  take_convolved(plan, slot, config, chunk, tokens);
  plan.first_input = plan.ring_tensors;
  // The first layer's input has no rounded copy: products round it when they read it.
  int64_t input = take_input(!chunk.embeddings), input_rounded = kAbsent;
  for (int64_t l = 0; l < count; ++l) {
    const bool last = l + 1 == count, first_only = first_tokens && last;
    LayerOffsets offsets;
    if (!recompute) {
      const bool normed = norm_before && chunk.layers.begin + l > 0;
      offsets =
          take_results(slot, config, chunk, form, tokens, sequences, first_only, normed, activated);
      if (first_only) take_first(slot, sequences, h, chunk.tensor_shards, offsets);
    }
    offsets.input = input;
    offsets.input_rounded = input_rounded;
    if (first_only) {
      offsets.output = slot.take(sequences * h);
    } else if (!last || chunk.head) {
      offsets.output = take_input();
    }
    if (!last && !recompute && !norm_before) {
      offsets.output_rounded = slot.take_rounded(tokens * h);
    }
    input = offsets.output;
    input_rounded = offsets.output_rounded;
    plan.layers.push_back(offsets);
  }
  take_final_norm(plan, slot, config, chunk, first_tokens ? sequences : tokens);
  if (chunk.head) add_head(plan, slot, config, head, tokens, sequences, scored);
  plan.kept = slot.used();

  Allocator working(form.type, working_at == kAbsent ? slot.end() : working_at);
  const bool all_first_only = first_tokens && count == 1;
  if (recompute) {
    // Large enough for any layer's results: only the last layer can have fewer rows.
    share_results(plan, take_results(working, config, chunk, form, tokens, sequences,
                                     all_first_only, norm_before));
    if (first_tokens) take_first(working, sequences, h, chunk.tensor_shards, plan.layers.back());
  }
  if (!chunk.head) plan.layers.back().output = working.take(state_floats(config, chunk, tokens));
  take_bias_values(plan, working, config, chunk, tokens);
  take_relative(plan, working, config, chunk, tokens, true);
  take_taps(plan, working, config, chunk, tokens, true);
  take_dropped(plan, working, config, head, chunk, tokens);
  const bool masked = chunk.head && head.kind == HeadKind::masked;
  const bool dense_tokens =
      chunk.head && head.kind == HeadKind::token && config.head.dense_on_tokens;
  if (ring.on() || chunk.held_shards < chunk.tensor_shards) form.second_stream = false;
  take_gradients(plan, working, config, chunk, form, tokens, sequences, masked ? scored : 0,
                 dense_tokens ? tokens : 0, first_tokens, all_first_only);
  plan.spare_output = norm_before               ? plan.normed_gradient
                      : chunk.tensor_shards > 1 ? plan.partials.all[0]
                                                : plan.wide_gradient;
  for (LayerOffsets& layer : plan.layers) {
    for (ShardOffsets& shard : layer.shards) {
      if (!activated) shard.activated = plan.wide_gradient;  // computed again
    }
  }
  plan.working = working.used();
  plan.floats = std::max(slot.end(), working.end());
  return plan;
}

int64_t ActivationPlan::training_floats(const EncoderConfig& config, Head head,
                                        const ModelPart& part, ActivationForm form, int64_t tokens,
                                        int64_t sequences, bool recompute, int64_t slots,
                                        int64_t horizon, bool activated) {
  int64_t one = 0, kept = 0, working = 0;
  const InputRing ring = InputRing::make(config, head, part, tokens, slots, horizon);
  for (int64_t c = 0; c < int64_t(part.chunks.size()); ++c) {
    const ActivationPlan plan =
        training(config, head, ModelChunk::of(part, c), form, tokens, sequences, recompute, 0,
                 kAbsent, ring, kAbsent, activated);
    one = std::max(one, plan.floats);
    kept = std::max(kept, plan.kept);
    working = std::max(working, plan.working);
  }
  return slots == 1 && !ring.on() ? one : slots * kept + ring.floats() + working;
}

bool ActivationPlan::keeps_activated(const EncoderConfig& config, Head head, const ModelPart& part,
                                     ActivationForm form, int64_t tokens, int64_t sequences,
                                     bool recompute, int64_t slots, int64_t bytes) {
  return bytes > 0 && tokens > 0 && !recompute && !config.layer.gated &&
         training_floats(config, head, part, form, tokens, sequences, false, slots, 0, true) *
                 kFloatBytes <=
             bytes;
}

int64_t ActivationPlan::inference_floats(const EncoderConfig& config, Head head,
                                         const ModelPart& part, DType type, int64_t tokens,
                                         int64_t sequences, bool whole_layers) {
  int64_t floats = 0;
  for (int64_t c = 0; c < int64_t(part.chunks.size()); ++c) {
    floats = std::max(floats, inference(config, head, ModelChunk::of(part, c), type, tokens,
                                        sequences, whole_layers)
                                  .floats);
  }
  return floats;
}

// A layer reads its input from `state` and writes its output there. Attention's tensors are not
// needed any more when the feed-forward begins, so the two share `wide`.
ActivationPlan ActivationPlan::inference(const EncoderConfig& config, Head head,
                                         const ModelChunk& chunk, DType type, int64_t tokens,
                                         int64_t sequences, bool whole_layers, int64_t scored) {
  const int64_t h = config.hidden_size;
  if (scored == kAbsent) scored = tokens;
  ActivationPlan plan;
  Allocator memory(type);
  const int64_t state = memory.take(state_floats(config, chunk, tokens));
  take_bias_values(plan, memory, config, chunk, tokens);
  take_relative(plan, memory, config, chunk, tokens, false);
  take_convolved(plan, memory, config, chunk, tokens);
  take_taps(plan, memory, config, chunk, tokens, false);
  take_bias_table(plan, memory, config, chunk);
  const int64_t sum = memory.take(tokens * h);
  plan.embedding_sum = sum;
  if (chunk.embeddings) take_projected(plan, memory, config, tokens);
  const int64_t v = chunk.tensor_shards;
  FINETUNE_CHECK(v == 1 || !whole_layers);
  LayerOffsets offsets;
  ShardOffsets shard;
  offsets.input = offsets.output = state;
  if (whole_layers) {
    shard.context = sum;
  } else {
    const bool norm_before = config.layer.norm_before;
    if (!norm_before) {
      offsets.input_rounded = offsets.output_rounded = memory.take_rounded(tokens * h);
    }
    offsets.middle = memory.take(tokens * h);
    offsets.middle_rounded = memory.take_rounded(tokens * h);
    if (norm_before) {
      offsets.normed = offsets.middle;
      offsets.normed_rounded = offsets.middle_rounded;
      offsets.stream = state;
    }
    const int64_t qkv_floats = (memory.floats_of(tokens * 3 * h / v) + 15) / 16 * 16;
    const int64_t wide = memory.take(std::max(memory.floats_of(tokens * config.inner_rows() / v),
                                              qkv_floats + memory.floats_of(tokens * h / v)));
    shard.qkv = wide;
    shard.context = wide + qkv_floats;
    offsets.attention_sum = offsets.output_sum = sum;
    shard.inner = shard.activated = wide;
    plan.partials.all = take_partials(memory, chunk, tokens * h, false);
  }
  offsets.shards.assign(size_t(chunk.held_shards), shard);
  plan.layers.assign(size_t(chunk.layers.size()), offsets);
  plan.layers.front().input_rounded = kAbsent;  // products round it
  plan.layers.back().output_rounded = kAbsent;
  if (first_tokens_only(config, chunk, head)) {
    LayerOffsets& last = plan.layers.back();
    last.first = memory.take(sequences * h);
    if (last.normed != kAbsent) last.first_normed = memory.take(sequences * h);
    if (!whole_layers) {
      const int64_t query = memory.take_typed(sequences * h / v);
      for (ShardOffsets& of : last.shards) of.first_query = query;
    }
  }
  if (chunk.head && config.layer.norm_before) plan.final_normed = plan.layers.back().middle;
  if (chunk.head) add_head(plan, memory, config, head, tokens, sequences, scored);
  take_dropped(plan, memory, config, head, chunk, tokens);
  plan.working = plan.floats = memory.used();
  return plan;
}

}  // namespace finetune
