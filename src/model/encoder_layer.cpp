// One encoder layer's passes: attention, feed-forward, and first tokens alone.
#include "model/encoder_layer.h"

#include <cmath>

namespace finetune {
namespace {

// The attention's operands as they lie in memory: q, k, v side by side, or q apart.
struct Heads {
  Tensor q, k, v;
};

Heads heads_at(const LayerPass& pass, int64_t query_offset, int64_t wide_offset) {
  const int64_t t = pass.batch.tokens(), h = pass.config.hidden_size;
  if (pass.first_only) {
    Tensor kv = pass.typed(wide_offset, t, 2 * h);
    return {pass.typed(query_offset, pass.rows(), h), kv.columns(0, h), kv.columns(h, h)};
  }
  Tensor qkv = pass.typed(wide_offset, t, 3 * h);
  return {qkv.columns(0, h), qkv.columns(h, h), qkv.columns(2 * h, h)};
}

AttentionShape attention_shape(const LayerPass& pass) {
  AttentionShape shape;
  shape.heads = pass.config.num_attention_heads;
  shape.head_size = pass.config.head_size();
  shape.scale = float(1.0 / std::sqrt(double(shape.head_size)));
  shape.keys = pass.batch.segments();
  shape.queries = pass.first_only ? pass.batch.first_segments() : shape.keys;
  shape.samples = pass.batch.samples();
  return shape;
}

// The rows of the fused projection that make queries (0), or keys and values (1).
Tensor query_rows(Tensor weight, int64_t h) {
  return weight.rows_from(0, h);
}
Tensor key_value_rows(Tensor weight, int64_t h) {
  return weight.rows_from(h, 2 * h);
}
Tensor query_part(Tensor bias, int64_t h) {
  return bias.columns(0, h);
}
Tensor key_value_part(Tensor bias, int64_t h) {
  return bias.columns(h, 2 * h);
}

// The first tokens' rows of the layer's input.
Tensor gather_first(const LayerPass& pass, Tensor input) {
  Tensor first = pass.at(pass.offsets.first, pass.rows(), input.cols);
  pass.backend.gather_rows(input, pass.batch.first_rows(), first);
  return first;
}

// What products read: of the layer's input, and of the feed-forward's.
Tensor input_of(const LayerPass& pass) {
  const int64_t t = pass.batch.tokens(), h = pass.config.hidden_size;
  Tensor rounded = pass.rounded(pass.offsets.input_rounded, t, h);
  return rounded ? rounded : pass.at(pass.offsets.input, t, h);
}
Tensor middle_of(const LayerPass& pass) {
  const int64_t rows = pass.rows(), h = pass.config.hidden_size;
  Tensor rounded = pass.rounded(pass.offsets.middle_rounded, rows, h);
  return rounded ? rounded : pass.at(pass.offsets.middle, rows, h);
}

void attention_forward(const LayerPass& pass, float* weights, Tensor residual) {
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const int64_t h = pass.config.hidden_size, t = pass.batch.tokens();
  Tensor input = input_of(pass);
  Tensor weight = pass.slots.qkv_weight.in(weights), bias = pass.slots.qkv_bias.in(weights);
  Heads heads = heads_at(pass, p.first_query, p.qkv);
  if (pass.first_only) {
    backend.linear(input, key_value_rows(weight, h), key_value_part(bias, h),
                   pass.typed(p.qkv, t, 2 * h));
    backend.linear(residual, query_rows(weight, h), query_part(bias, h), heads.q);
  } else {
    backend.linear(input, weight, bias, pass.typed(p.qkv, t, 3 * h));
  }
  Tensor log_sums = pass.at(p.log_sums, pass.config.num_attention_heads, pass.rows());
  backend.attention(attention_shape(pass), pass.dropout.attention, heads.q, heads.k, heads.v,
                    pass.typed(p.context, pass.rows(), h), log_sums);
}

// dx of the fused projection and its weights; leaves the gradient of the layer's input.
void projection_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                         float* arena, bool input_wanted) {
  Backend& backend = pass.backend;
  const int64_t h = pass.config.hidden_size, t = pass.batch.tokens();
  Tensor input = input_of(pass);
  Tensor gradient = pass.at(g.gradient, pass.rows(), h), dinput = pass.at(g.input, t, h);
  Tensor weight = pass.slots.qkv_weight.in(weights);
  Tensor dweight = pass.slots.qkv_weight.in(arena), dbias = pass.slots.qkv_bias.in(arena);
  if (!pass.first_only) {
    Tensor dqkv = pass.typed(g.wide, t, 3 * h);
    if (input_wanted) backend.linear_backward_input(dqkv, weight, dinput, true);
    backend.linear_backward_weight(dqkv, input, dweight, dbias, pass.accumulate);
    return;
  }
  Tensor dq = pass.typed(g.query, pass.rows(), h), dkv = pass.typed(g.wide, t, 2 * h);
  Tensor first = pass.at(pass.offsets.first, pass.rows(), h);
  if (input_wanted) {
    backend.linear_backward_input(dkv, key_value_rows(weight, h), dinput, false);
    backend.linear_backward_input(dq, query_rows(weight, h), gradient, true);
    backend.scatter_rows_add(gradient, pass.batch.first_rows(), dinput);
  }
  backend.linear_backward_weight(dq, first, query_rows(dweight, h), query_part(dbias, h),
                                 pass.accumulate);
  backend.linear_backward_weight(dkv, input, key_value_rows(dweight, h), key_value_part(dbias, h),
                                 pass.accumulate);
}

}  // namespace

Slot slot_of(const ParameterTable& table, Role role, ParameterPart part, int64_t layer, int shard) {
  const Parameter* p = table.find(role, part, layer, shard);
  return p ? Slot{p->offset, p->slice.rows, p->slice.cols} : Slot{};
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
  FINETUNE_CHECK(weight(Role::value).offset == qkv_weight.offset + 2 * rows * hidden);
  FINETUNE_CHECK(bias(Role::value).offset == qkv_bias.offset + 2 * rows);
  qkv_weight.rows = qkv_bias.cols = 3 * rows;
  attention_weight = weight(Role::attention_output);
  attention_bias = bias(Role::attention_output);
  attention_gamma = weight(Role::attention_norm);
  attention_beta = bias(Role::attention_norm);
  inner_weight = weight(Role::inner);
  inner_bias = bias(Role::inner);
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

void whole_layer_forward(const LayerPass& pass, float* weights) {
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& s = pass.slots;
  const int64_t h = pass.config.hidden_size, rows = pass.rows();
  Tensor input = pass.at(p.input, pass.batch.tokens(), h);
  Tensor first = pass.first_only ? gather_first(pass, input) : Tensor{};
  Tensor context = pass.rounded(p.context, rows, h);
  pass.backend.self_attention(attention_shape(pass), input, first, s.qkv_weight.in(weights),
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
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& s = pass.slots;
  const int64_t h = pass.config.hidden_size, inner = pass.config.intermediate_size;
  const int64_t rows = pass.rows();
  const float epsilon = float(pass.config.layer_norm_eps);
  const bool keep = p.output_stats != kAbsent;

  Tensor residual = pass.at(p.input, pass.batch.tokens(), h);
  if (pass.first_only) residual = gather_first(pass, residual);
  attention_forward(pass, weights, residual);

  Tensor sum = pass.at(p.attention_sum, rows, h), middle = pass.at(p.middle, rows, h);
  backend.linear(pass.typed(p.context, rows, h), s.attention_weight.in(weights),
                 s.attention_bias.in(weights), sum);
  backend.add_layer_norm(sum, residual, pass.dropout.attention_output, pass.names(),
                         s.attention_gamma.in(weights), s.attention_beta.in(weights), epsilon,
                         keep ? sum : Tensor{}, pass.at(p.attention_stats, rows, 2), middle,
                         pass.rounded(p.middle_rounded, rows, h));

  Tensor before = pass.typed(p.inner, rows, inner),
         activated = pass.typed(p.activated, rows, inner);
  backend.linear(middle_of(pass), s.inner_weight.in(weights), s.inner_bias.in(weights), before);
  backend.activation(pass.config.hidden_act, before, activated);
  sum = pass.at(p.output_sum, rows, h);
  backend.linear(activated, s.output_weight.in(weights), s.output_bias.in(weights), sum);
  backend.add_layer_norm(sum, middle, pass.dropout.output, pass.names(), s.output_gamma.in(weights),
                         s.output_beta.in(weights), epsilon, keep ? sum : Tensor{},
                         pass.at(p.output_stats, rows, 2), pass.at(p.output, rows, h),
                         pass.rounded(p.output_rounded, rows, h));
}

// Of each product the input's gradient comes first: the backend may keep what it reads of the
// weights where their gradient will be (AdamWPart).
void layer_backward(const LayerPass& pass, const LayerGradients& g, float* weights, float* arena,
                    bool input_wanted) {
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& s = pass.slots;
  const int64_t h = pass.config.hidden_size, rows = pass.rows();
  // `gradient` is that of the tensor on the residual path, from the output downwards; a branch
  // without dropout has the same gradient as the residual until its dense layer, but for its type.
  Tensor gradient = pass.at(g.gradient, rows, h);
  auto branch_of = [&](const Dropout& dropout) {
    return dropout.on() || pass.backend.activation_type() == DType::bf16
               ? pass.typed(g.branch, rows, h)
               : Tensor{};
  };

  Tensor branch = branch_of(pass.dropout.output);
  backend.add_layer_norm_backward(
      gradient, pass.at(p.output_sum, rows, h), pass.at(p.output_stats, rows, 2),
      s.output_gamma.in(weights), pass.dropout.output, pass.names(), gradient, branch,
      s.output_gamma.in(arena), s.output_beta.in(arena), pass.accumulate);
  if (!branch) branch = gradient;
  Tensor inner = pass.typed(p.inner, rows, pass.config.intermediate_size);
  Tensor dinner = pass.typed(g.wide, rows, pass.config.intermediate_size);
  backend.linear_backward_input(branch, s.output_weight.in(weights), dinner, false);
  // The activation's result is not kept but computed again, where its input was.
  backend.activation_backward(pass.config.hidden_act, inner, dinner, dinner, inner);
  backend.linear_backward_weight(branch, inner, s.output_weight.in(arena), s.output_bias.in(arena),
                                 pass.accumulate);
  backend.linear_backward_input(dinner, s.inner_weight.in(weights), gradient, true);
  backend.linear_backward_weight(dinner, middle_of(pass), s.inner_weight.in(arena),
                                 s.inner_bias.in(arena), pass.accumulate);

  branch = branch_of(pass.dropout.attention_output);
  backend.add_layer_norm_backward(
      gradient, pass.at(p.attention_sum, rows, h), pass.at(p.attention_stats, rows, 2),
      s.attention_gamma.in(weights), pass.dropout.attention_output, pass.names(), gradient, branch,
      s.attention_gamma.in(arena), s.attention_beta.in(arena), pass.accumulate);
  if (!branch) branch = gradient;
  Tensor context = pass.typed(p.context, rows, h), dcontext = pass.typed(g.context, rows, h);
  backend.linear_backward_input(branch, s.attention_weight.in(weights), dcontext, false);
  backend.linear_backward_weight(branch, context, s.attention_weight.in(arena),
                                 s.attention_bias.in(arena), pass.accumulate);

  Heads heads = heads_at(pass, p.first_query, p.qkv);
  Heads dheads = heads_at(pass, g.query, g.wide);
  backend.attention_backward(attention_shape(pass), pass.dropout.attention, heads.q, heads.k,
                             heads.v, context,
                             pass.at(p.log_sums, pass.config.num_attention_heads, rows), dcontext,
                             dheads.q, dheads.k, dheads.v);
  projection_backward(pass, g, weights, arena, input_wanted);
}

}  // namespace finetune
