// Finds the position bias's table and its gradient, in the arenas or behind activations.
#include "model/passes/position_bias.h"

namespace finetune {
namespace {

void copy(Backend& backend, Tensor from, Tensor to) {
  backend.fill_zero(to);
  backend.add(from, to);
}

}  // namespace

SharedPositionBias::SharedPositionBias(const ParameterTable& table, const EncoderConfig& config,
                                       const ModelPart& part) {
  if (!config.layer.position_bias) return;
  heads_ = config.num_attention_heads / part.tensor_shards;
  for (int64_t shard = part.shards.begin; shard < part.shards.end; ++shard) {
    tables_.push_back(
        part.embeddings ? slot_of(table, Role::position_bias, ParameterPart::weight, 0, int(shard))
                        : Slot{});
  }
}

Tensor SharedPositionBias::at(const EndPass& pass, int64_t place, size_t i) const {
  return pass.at(place + int64_t(i) * kPositionBuckets * heads_, kPositionBuckets, heads_);
}

Tensor SharedPositionBias::carried(const EndPass& pass, int64_t place, size_t i) const {
  return at(pass, place + pass.batch.tokens() * pass.config.hidden_size, i);
}

Tensor SharedPositionBias::table(const EndPass& pass, const ModelChunk& of, size_t i) const {
  return of.embeddings ? tables_[i].in(pass.weights) : at(pass, pass.plan.bias_table, i);
}

LayerBias SharedPositionBias::compute_values(const EndPass& pass, const ModelChunk& of) const {
  LayerBias bias;
  if (heads_ == 0) return bias;
  bias.values = pass.plan.bias_values;
  bias.span = pass.batch.segments().max_length;
  const int64_t width = 2 * bias.span - 1;
  for (size_t i = 0; i < tables_.size(); ++i) {
    pass.backend.position_bias(table(pass, of, i),
                               pass.at(bias.values + int64_t(i) * heads_ * width, heads_, width));
  }
  return bias;
}

LayerBias SharedPositionBias::forward(const EndPass& pass, const ModelChunk& of) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Tensor own = table(pass, of, i);
    if (!of.embeddings) copy(pass.backend, carried(pass, pass.plan.layers.front().input, i), own);
    if (!of.head) copy(pass.backend, own, carried(pass, pass.plan.layers.back().output, i));
  }
  return compute_values(pass, of);
}

LayerBias SharedPositionBias::before_backward(const EndPass& pass, const ModelChunk& of,
                                              bool trained) const {
  LayerBias bias = compute_values(pass, of);
  if (heads_ == 0 || !trained) return bias;
  bias.gradient = pass.plan.bias_gradient;
  bias.table = pass.plan.gradient + pass.batch.tokens() * pass.config.hidden_size;
  return bias;
}

void SharedPositionBias::after_backward(const EndPass& pass, float* arena, bool accumulate) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Tensor gradient = tables_[i].in(arena);
    if (!accumulate) pass.backend.fill_zero(gradient);
    pass.backend.add(carried(pass, pass.plan.gradient, i), gradient);
  }
}

}  // namespace finetune
