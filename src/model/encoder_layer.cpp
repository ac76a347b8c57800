// One encoder layer's passes: attention and feed-forward, each with its residual and its norm.
#include "model/encoder_layer.h"

#include "model/passes/attention_block.h"
#include "model/passes/feed_forward_block.h"

namespace finetune {

Slot slot_of(const ParameterTable& table, Role role, ParameterPart part, int64_t layer, int shard) {
  const Parameter* p = table.find(role, part, layer, shard);
  return p ? Slot{p->offset, p->slice.rows, p->slice.cols, p->dtype} : Slot{};
}

LayerSlots::LayerSlots(const ParameterTable& table, int64_t layer, int shard) {
  auto weight = [&](Role role) {
    return slot_of(table, role, ParameterPart::weight, layer, shard);
  };
  auto bias = [&](Role role) { return slot_of(table, role, ParameterPart::bias, layer, shard); };
  qkv_weight = weight(Role::query);
  qkv_bias = bias(Role::query);
  const int64_t rows = qkv_weight.rows, hidden = qkv_weight.cols;
  FINETUNE_CHECK(rows > 0);
  if (const Slot value = weight(Role::value); value.rows > 0) {  // else one tensor has all three
    FINETUNE_CHECK(value.offset == qkv_weight.offset + floats_of(2 * rows * hidden, value.dtype));
    qkv_weight.rows = 3 * rows;
    if (qkv_bias.rows > 0) {
      FINETUNE_CHECK(bias(Role::value).offset == qkv_bias.offset + 2 * rows);
      qkv_bias.cols = 3 * rows;
    }
  }
  position_key = weight(Role::position_key);
  position_key_bias = bias(Role::position_key);
  position_query = weight(Role::position_query);
  position_query_bias = bias(Role::position_query);
  attention_weight = weight(Role::attention_output);
  attention_bias = bias(Role::attention_output);
  attention_gamma = weight(Role::attention_norm);
  attention_beta = bias(Role::attention_norm);
  inner_weight = weight(Role::inner);
  inner_bias = bias(Role::inner);
  if (const Slot gate = weight(Role::gate); gate.rows > 0) {
    FINETUNE_CHECK(gate.offset ==
                   inner_weight.offset + floats_of(gate.rows * gate.cols, gate.dtype));
    inner_weight.rows *= 2;
    inner_bias.cols *= 2;
  }
  output_weight = weight(Role::output);
  output_bias = bias(Role::output);
  output_gamma = weight(Role::output_norm);
  output_beta = bias(Role::output_norm);
}

Tensor LayerPass::at(int64_t offset, int64_t rows, int64_t cols) const {
  return offset == kAbsent ? Tensor{} : matrix(memory + offset, rows, cols);
}

Tensor LayerPass::rounded(int64_t offset, int64_t rows, int64_t cols) const {
  return offset == kAbsent ? Tensor{} : Tensor{memory + offset, DType::bf16, rows, cols, cols};
}

Tensor LayerPass::typed(int64_t offset, int64_t rows, int64_t cols) const {
  return backend.activation_type() == DType::bf16 ? rounded(offset, rows, cols)
                                                  : at(offset, rows, cols);
}

bool has_whole_layers(const Backend& backend, const EncoderConfig& c, int64_t tensor_shards) {
  return tensor_shards == 1 && c.layer.is_berts() && !c.relative.on() && !c.convolution.on() &&
         !c.is_rotary() &&
         backend.has_layer({c.hidden_size, c.head_size(), c.intermediate_size, c.hidden_act});
}

void whole_layer_forward(const LayerPass& pass, float* weights) {
  const LayerOffsets& p = pass.offsets;
  FINETUNE_CHECK(!pass.cut());
  const LayerSlots& s = pass.shards[0];
  const int64_t h = pass.config.hidden_size, rows = pass.rows();
  Tensor input = pass.at(p.input, pass.batch.tokens(), h);
  Tensor first = pass.first_only ? gather_first(pass, input, p.first) : Tensor{};
  Tensor context = pass.rounded(p.shards[0].context, rows, h);
  pass.backend.self_attention(attention_shape(pass, 0), input, first, s.qkv_weight.in(weights),
                              s.qkv_bias.in(weights), context);
  LayerOutput layer;
  layer.attention_weight = s.attention_weight.in(weights);
  layer.attention_bias = s.attention_bias.in(weights);
  layer.attention_gamma = s.attention_gamma.in(weights);
  layer.attention_beta = s.attention_beta.in(weights);
  layer.inner_weight = s.inner_weight.in(weights);
  layer.inner_bias = s.inner_bias.in(weights);
  layer.output_weight = s.output_weight.in(weights);
  layer.output_bias = s.output_bias.in(weights);
  layer.output_gamma = s.output_gamma.in(weights);
  layer.output_beta = s.output_beta.in(weights);
  layer.epsilon = float(pass.config.layer_norm_eps);
  layer.activation = pass.config.hidden_act;
  pass.backend.layer_output(layer, context, first ? first : input, pass.at(p.output, rows, h));
}

void layer_forward(const LayerPass& pass, float* weights) {
  if (pass.config.layer.norm_before) return norm_before_forward(pass, weights);
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& norms = pass.shards[0];
  const int64_t h = pass.config.hidden_size, rows = pass.rows();
  const float epsilon = float(pass.config.layer_norm_eps);
  const bool keep = p.output_stats != kAbsent;

  Tensor residual = pass.at(p.input, pass.batch.tokens(), h);
  if (pass.first_only) residual = gather_first(pass, residual, p.first);
  Tensor sum = attention_forward(pass, weights, residual), middle = pass.at(p.middle, rows, h);
  backend.add_layer_norm(sum, residual, pass.dropout.attention_output, pass.names(),
                         norms.attention_gamma.in(weights), norms.attention_beta.in(weights),
                         epsilon, keep ? sum : Tensor{}, pass.at(p.attention_stats, rows, 2),
                         middle, pass.rounded(p.middle_rounded, rows, h));
  sum = feed_forward(pass, weights);
  backend.add_layer_norm(sum, middle, pass.dropout.output, pass.names(),
                         norms.output_gamma.in(weights), norms.output_beta.in(weights), epsilon,
                         keep ? sum : Tensor{}, pass.at(p.output_stats, rows, 2),
                         pass.at(p.output, rows, h), pass.rounded(p.output_rounded, rows, h));
}

LayerGradients LayerGradients::of(const ActivationPlan& plan, bool first_only) {
  LayerGradients g;
  g.gradient = first_only ? plan.first_gradient : plan.gradient;
  g.branch = plan.branch_gradient;
  g.context = plan.context_gradient;
  g.wide = plan.wide_gradient;
  g.attention_branch = plan.attention_branch_gradient;
  g.qkv = plan.qkv_gradient;
  g.query = plan.query_gradient;
  g.input = plan.gradient;
  g.normed = plan.normed_gradient;
  return g;
}

void layer_backward(const LayerPass& pass, const LayerGradients& g, float* weights, float* arena,
                    bool input_wanted) {
  if (pass.config.layer.norm_before) {
    return norm_before_backward(pass, g, weights, arena, input_wanted);
  }
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& norms = pass.shards[0];
  const int64_t h = pass.config.hidden_size, rows = pass.rows();
  // `gradient` is the loss's gradient with respect to the residual stream, the tensor that each
  // block adds its result to. It starts at the layer's output and ends at the layer's input.
  // `branch` is the gradient of a block's result before dropout. Without dropout it equals
  // `gradient`, so that it needs no memory of its own, except in another type.
  Tensor gradient = pass.at(g.gradient, rows, h);
  auto branch_of = [&](const Dropout& dropout, int64_t place) {
    return dropout.on() || pass.backend.activation_type() == DType::bf16
               ? pass.typed(place, rows, h)
               : Tensor{};
  };

  // The biases of dense layers before norms; only shard 0 has them.
  auto summed = [&](const Slot& bias) { return pass.sums_with_rows() ? bias.in(arena) : Tensor{}; };

  Tensor branch = branch_of(pass.dropout.output, g.branch);
  backend.add_layer_norm_backward(gradient, pass.at(p.output_sum, rows, h),
                                  pass.at(p.output_stats, rows, 2), norms.output_gamma.in(weights),
                                  pass.dropout.output, pass.names(), gradient, branch,
                                  norms.output_gamma.in(arena), norms.output_beta.in(arena),
                                  pass.accumulate, summed(norms.output_bias));
  if (!branch) branch = gradient;
  feed_forward_backward(pass, g, weights, arena, branch, gradient);

  branch = branch_of(pass.dropout.attention_output, g.attention_branch);
  backend.add_layer_norm_backward(
      gradient, pass.at(p.attention_sum, rows, h), pass.at(p.attention_stats, rows, 2),
      norms.attention_gamma.in(weights), pass.dropout.attention_output, pass.names(), gradient,
      branch, norms.attention_gamma.in(arena), norms.attention_beta.in(arena), pass.accumulate,
      summed(norms.attention_bias));
  attention_backward(pass, g, weights, arena, branch ? branch : gradient, input_wanted);
}

}  // namespace finetune
