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
                                       const ModelPart& part, TensorSum* sum)
    : held_shards_(part.shards.size()), sum_(part.tensor_shards > 1 ? sum : nullptr) {
  if (config.relative.on() && part.embeddings) {
    relative_ = slot_of(table, Role::relative_embeddings, ParameterPart::weight);
    relative_gamma_ = slot_of(table, Role::relative_norm, ParameterPart::weight);
    relative_beta_ = slot_of(table, Role::relative_norm, ParameterPart::bias);
  }
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
  if (pass.config.relative.on()) return relative_forward(pass, of);
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Tensor own = table(pass, of, i);
    if (!of.embeddings) copy(pass.backend, carried(pass, pass.plan.layers.front().input, i), own);
    if (!of.head) copy(pass.backend, own, carried(pass, pass.plan.layers.back().output, i));
  }
  return compute_values(pass, of);
}

LayerBias SharedPositionBias::before_backward(const EndPass& pass, const ModelChunk& of,
                                              bool trained) const {
  if (pass.config.relative.on()) {
    LayerBias bias = normed_table(pass, of);
    const int64_t behind = pass.batch.tokens() * pass.config.hidden_size;
    if (trained) bias.relative_gradient = pass.plan.gradient + behind;
    return bias;
  }
  LayerBias bias = compute_values(pass, of);
  if (heads_ == 0 || !trained) return bias;
  bias.gradient = pass.plan.bias_gradient;
  bias.table = pass.plan.gradient + pass.batch.tokens() * pass.config.hidden_size;
  return bias;
}

void SharedPositionBias::after_backward(const EndPass& pass, float* arena, bool accumulate) const {
  if (pass.config.relative.on()) return relative_after_backward(pass, arena, accumulate);
  for (size_t i = 0; i < tables_.size(); ++i) {
    const Tensor gradient = tables_[i].in(arena);
    if (!accumulate) pass.backend.fill_zero(gradient);
    pass.backend.add(carried(pass, pass.plan.gradient, i), gradient);
  }
}

// Norms only the table's rows for distances in these texts, since other rows are never read.
LayerBias SharedPositionBias::normed_table(const EndPass& pass, const ModelChunk& of) const {
  LayerBias bias;
  bias.relative = pass.plan.relative;
  bias.tables = &relative_tables_;
  bias.buffers = &pass.plan.relative_layer;
  if (!of.embeddings) return bias;
  const int64_t h = pass.config.hidden_size;
  const RowsInUse rows(pass.config.relative, pass.batch.segments().max_length);
  const Tensor table = relative_.in(pass.weights).rows_from(rows.first, rows.count);
  const Tensor normed = pass.at(bias.relative + rows.first * h, rows.count, h);
  if (relative_gamma_.rows == 0) {
    copy(pass.backend, table, normed);
    return bias;
  }
  pass.backend.add_layer_norm(table, {}, {}, {}, relative_gamma_.in(pass.weights),
                              relative_beta_.in(pass.weights), float(pass.config.layer_norm_eps),
                              {}, pass.at(pass.plan.relative_stats, rows.count, 2), normed);
  return bias;
}

LayerBias SharedPositionBias::relative_forward(const EndPass& pass, const ModelChunk& of) const {
  const LayerBias bias = normed_table(pass, of);
  const int64_t h = pass.config.hidden_size, tokens = pass.batch.tokens();
  const RowsInUse rows(pass.config.relative, pass.batch.segments().max_length);
  const auto in_use = [&](int64_t place) { return pass.at(place + rows.first * h, rows.count, h); };
  const std::vector<LayerOffsets>& layers = pass.plan.layers;
  if (!of.embeddings) {
    copy(pass.backend, in_use(layers.front().input + tokens * h), in_use(bias.relative));
  }
  if (!of.head) {
    copy(pass.backend, in_use(bias.relative), in_use(layers.back().output + tokens * h));
  }
  return bias;
}

void SharedPositionBias::relative_after_backward(const EndPass& pass, float* arena,
                                                 bool accumulate) const {
  Backend& backend = pass.backend;
  const int64_t h = pass.config.hidden_size, all = relative_.rows;
  const int64_t behind = pass.plan.gradient + pass.batch.tokens() * h;
  std::vector<Tensor> partials;
  for (int64_t i = 0; i < held_shards_; ++i) {
    partials.push_back(pass.at(behind + i * all * h, all, h));
  }
  if (sum_) sum_->add(backend, partials);
  const RowsInUse rows(pass.config.relative, pass.batch.segments().max_length);
  const Tensor gradient = partials[0].rows_from(rows.first, rows.count);
  if (relative_gamma_.rows > 0) {
    backend.add_layer_norm_backward(
        gradient, relative_.in(pass.weights).rows_from(rows.first, rows.count),
        pass.at(pass.plan.relative_stats, rows.count, 2), relative_gamma_.in(pass.weights), {}, {},
        gradient, {}, relative_gamma_.in(arena), relative_beta_.in(arena), accumulate);
  }
  const Tensor to = relative_.in(arena);
  if (!accumulate) backend.fill_zero(to);
  backend.add(gradient, to.rows_from(rows.first, rows.count));
}

}  // namespace finetune
