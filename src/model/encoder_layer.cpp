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
  const int64_t t = pass.batch.tokens(), width = pass.shard_width();
  if (pass.first_only) {
    Tensor kv = pass.typed(wide_offset, t, 2 * width);
    return {pass.typed(query_offset, pass.rows(), width), kv.columns(0, width),
            kv.columns(width, width)};
  }
  Tensor qkv = pass.typed(wide_offset, t, 3 * width);
  return {qkv.columns(0, width), qkv.columns(width, width), qkv.columns(2 * width, width)};
}

// `shard`: number among those held here, as below.
AttentionShape attention_shape(const LayerPass& pass, size_t shard) {
  AttentionShape shape;
  shape.heads = pass.shard_heads();
  shape.first_head = (pass.first_shard + int64_t(shard)) * shape.heads;
  shape.head_size = pass.config.head_size();
  shape.scale = float(1.0 / std::sqrt(double(shape.head_size)));
  shape.keys = pass.batch.segments();
  shape.queries = pass.first_only ? pass.batch.first_segments() : shape.keys;
  shape.samples = pass.batch.samples();
  return shape;
}

// The rows of the fused projection that make queries (0), or keys and values (1).
Tensor query_rows(Tensor weight) {
  return weight.rows_from(0, weight.rows / 3);
}
Tensor key_value_rows(Tensor weight) {
  return weight.rows_from(weight.rows / 3, weight.rows / 3 * 2);
}
Tensor query_part(Tensor bias) {
  return bias.columns(0, bias.cols / 3);
}
Tensor key_value_part(Tensor bias) {
  return bias.columns(bias.cols / 3, bias.cols / 3 * 2);
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

// Sums of (rows, H) over the tensor shards. The first shard's partial is at `first`, which has the
// sum in the end, the others' in working memory.
class PartialSum {
 public:
  PartialSum(const LayerPass& pass, Tensor first, const std::vector<int64_t>& places)
      : pass_(pass) {
    partials_.push_back(first);
    for (size_t i = 1; i < pass.shards.size(); ++i) {
      partials_.push_back(pass.at(places[i], first.rows, first.cols));
    }
  }
  Tensor of(size_t shard) const { return partials_[shard]; }
  Tensor add() const {
    if (pass_.cut()) pass_.sum->add(pass_.backend, partials_);
    return partials_[0];
  }

 private:
  const LayerPass& pass_;
  std::vector<Tensor> partials_;
};

// dx of products whose inner dimension is cut, added to `gradient`: at once where there is one
// shard, else as the sum over all of them.
class InputGradient {
 public:
  InputGradient(const LayerPass& pass, Tensor gradient, const std::vector<int64_t>& places)
      : pass_(pass),
        gradient_(gradient),
        sum_(pass, pass.cut() ? pass.at(places[0], gradient.rows, gradient.cols) : Tensor{},
             places) {}
  void add(size_t shard, Tensor dy, Tensor w) const {
    pass_.backend.linear_backward_input(dy, w, pass_.cut() ? sum_.of(shard) : gradient_,
                                        !pass_.cut());
  }
  void finish() const {
    if (pass_.cut()) pass_.backend.add(sum_.add(), gradient_);
  }

 private:
  const LayerPass& pass_;
  Tensor gradient_;
  PartialSum sum_;
};

void attention_forward(const LayerPass& pass, size_t shard, float* weights, Tensor residual) {
  Backend& backend = pass.backend;
  const ShardOffsets& p = pass.offsets.shards[shard];
  const int64_t width = pass.shard_width(), t = pass.batch.tokens();
  const LayerSlots& s = pass.shards[shard];
  Tensor input = input_of(pass);
  Tensor weight = s.qkv_weight.in(weights), bias = s.qkv_bias.in(weights);
  Heads heads = heads_at(pass, p.first_query, p.qkv);
  if (pass.first_only) {
    backend.linear(input, key_value_rows(weight), key_value_part(bias),
                   pass.typed(p.qkv, t, 2 * width));
    backend.linear(residual, query_rows(weight), query_part(bias), heads.q);
  } else {
    backend.linear(input, weight, bias, pass.typed(p.qkv, t, 3 * width));
  }
  Tensor log_sums = pass.at(p.log_sums, pass.shard_heads(), pass.rows());
  backend.attention(attention_shape(pass, shard), pass.dropout.attention, heads.q, heads.k, heads.v,
                    pass.typed(p.context, pass.rows(), width), log_sums);
}

// Back through the shards' attention and fused projections, from the gradient of what leaves
// attention's dense layer; leaves the gradient of the layer's input.
class AttentionBackward {
 public:
  AttentionBackward(const LayerPass& pass, const LayerGradients& g, float* weights, float* arena,
                    bool input_wanted)
      : pass_(pass),
        g_(g),
        weights_(weights),
        arena_(arena),
        input_wanted_(input_wanted),
        gradient_(pass.at(g.gradient, pass.rows(), pass.config.hidden_size)),
        dinput_(pass.at(g.input, pass.batch.tokens(), pass.config.hidden_size)),
        of_queries_(pass, gradient_, pass.first_only ? pass.partials.first : pass.partials.all),
        of_keys_(pass, dinput_, pass.partials.all) {}

  void run(Tensor branch) const {
    for (size_t i = 0; i < pass_.shards.size(); ++i) {
      attention(i, branch);
      pass_.first_only ? first_projection(i) : projection(i);
    }
    if (!input_wanted_) return;
    if (pass_.first_only) of_keys_.add();
    of_queries_.finish();
    if (pass_.first_only) {
      pass_.backend.scatter_rows_add(gradient_, pass_.batch.first_rows(), dinput_);
    }
  }

 private:
  void attention(size_t shard, Tensor branch) const {
    Backend& backend = pass_.backend;
    const ShardOffsets& p = pass_.offsets.shards[shard];
    const LayerSlots& s = pass_.shards[shard];
    const int64_t rows = pass_.rows(), width = pass_.shard_width();
    Tensor context = pass_.typed(p.context, rows, width);
    Tensor dcontext = pass_.typed(g_.context, rows, width);
    backend.linear_backward_input(branch, s.attention_weight.in(weights_), dcontext, false);
    backend.linear_backward_weight(branch, context, s.attention_weight.in(arena_),
                                   s.attention_bias.in(arena_), pass_.accumulate);
    const Heads heads = heads_at(pass_, p.first_query, p.qkv);
    const Heads dheads = heads_at(pass_, g_.query, g_.wide);
    backend.attention_backward(
        attention_shape(pass_, shard), pass_.dropout.attention, heads.q, heads.k, heads.v, context,
        pass_.at(p.log_sums, pass_.shard_heads(), rows), dcontext, dheads.q, dheads.k, dheads.v);
  }

  void projection(size_t shard) const {
    const LayerSlots& s = pass_.shards[shard];
    Tensor dqkv = pass_.typed(g_.wide, pass_.batch.tokens(), 3 * pass_.shard_width());
    if (input_wanted_) of_queries_.add(shard, dqkv, s.qkv_weight.in(weights_));
    pass_.backend.linear_backward_weight(dqkv, input_of(pass_), s.qkv_weight.in(arena_),
                                         s.qkv_bias.in(arena_), pass_.accumulate);
  }

  void first_projection(size_t shard) const {
    Backend& backend = pass_.backend;
    const LayerSlots& s = pass_.shards[shard];
    const int64_t rows = pass_.rows(), width = pass_.shard_width();
    Tensor weight = s.qkv_weight.in(weights_);
    Tensor dweight = s.qkv_weight.in(arena_), dbias = s.qkv_bias.in(arena_);
    Tensor dq = pass_.typed(g_.query, rows, width);
    Tensor dkv = pass_.typed(g_.wide, pass_.batch.tokens(), 2 * width);
    if (input_wanted_) {
      backend.linear_backward_input(dkv, key_value_rows(weight), of_keys_.of(shard), false);
      of_queries_.add(shard, dq, query_rows(weight));
    }
    backend.linear_backward_weight(dq, pass_.at(pass_.offsets.first, rows, weight.cols),
                                   query_rows(dweight), query_part(dbias), pass_.accumulate);
    backend.linear_backward_weight(dkv, input_of(pass_), key_value_rows(dweight),
                                   key_value_part(dbias), pass_.accumulate);
  }

  const LayerPass& pass_;
  const LayerGradients& g_;
  float* weights_;
  float* arena_;
  bool input_wanted_;
  Tensor gradient_, dinput_;
  InputGradient of_queries_;  // of all three where they are one product
  PartialSum of_keys_;        // of keys and values where queries are apart
};

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
  FINETUNE_CHECK(!pass.cut());
  const LayerSlots& s = pass.shards[0];
  const int64_t h = pass.config.hidden_size, rows = pass.rows();
  Tensor input = pass.at(p.input, pass.batch.tokens(), h);
  Tensor first = pass.first_only ? gather_first(pass, input) : Tensor{};
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
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& norms = pass.shards[0];
  const int64_t h = pass.config.hidden_size, inner = pass.shard_inner(), rows = pass.rows();
  const float epsilon = float(pass.config.layer_norm_eps);
  const bool keep = p.output_stats != kAbsent;

  Tensor residual = pass.at(p.input, pass.batch.tokens(), h);
  if (pass.first_only) residual = gather_first(pass, residual);
  const PartialSum attention(pass, pass.at(p.attention_sum, rows, h), pass.partials.all);
  for (size_t i = 0; i < pass.shards.size(); ++i) {
    const LayerSlots& s = pass.shards[i];
    attention_forward(pass, i, weights, residual);
    backend.linear(pass.typed(p.shards[i].context, rows, pass.shard_width()),
                   s.attention_weight.in(weights), s.attention_bias.in(weights), attention.of(i));
  }
  Tensor sum = attention.add(), middle = pass.at(p.middle, rows, h);
  backend.add_layer_norm(sum, residual, pass.dropout.attention_output, pass.names(),
                         norms.attention_gamma.in(weights), norms.attention_beta.in(weights),
                         epsilon, keep ? sum : Tensor{}, pass.at(p.attention_stats, rows, 2),
                         middle, pass.rounded(p.middle_rounded, rows, h));

  const PartialSum output(pass, pass.at(p.output_sum, rows, h), pass.partials.all);
  for (size_t i = 0; i < pass.shards.size(); ++i) {
    const LayerSlots& s = pass.shards[i];
    Tensor before = pass.typed(p.shards[i].inner, rows, inner);
    Tensor activated = pass.typed(p.activated, rows, inner);
    backend.linear(middle_of(pass), s.inner_weight.in(weights), s.inner_bias.in(weights), before);
    backend.activation(pass.config.hidden_act, before, activated);
    backend.linear(activated, s.output_weight.in(weights), s.output_bias.in(weights), output.of(i));
  }
  sum = output.add();
  backend.add_layer_norm(sum, middle, pass.dropout.output, pass.names(),
                         norms.output_gamma.in(weights), norms.output_beta.in(weights), epsilon,
                         keep ? sum : Tensor{}, pass.at(p.output_stats, rows, 2),
                         pass.at(p.output, rows, h), pass.rounded(p.output_rounded, rows, h));
}

// Of each product the input's gradient comes first: the backend may keep what it reads of the
// weights where their gradient will be (AdamWPart).
void layer_backward(const LayerPass& pass, const LayerGradients& g, float* weights, float* arena,
                    bool input_wanted) {
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& norms = pass.shards[0];
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
      norms.output_gamma.in(weights), pass.dropout.output, pass.names(), gradient, branch,
      norms.output_gamma.in(arena), norms.output_beta.in(arena), pass.accumulate);
  if (!branch) branch = gradient;
  const InputGradient of_middle(pass, gradient, pass.partials.all);
  for (size_t i = 0; i < pass.shards.size(); ++i) {
    const LayerSlots& s = pass.shards[i];
    Tensor inner = pass.typed(p.shards[i].inner, rows, pass.shard_inner());
    Tensor dinner = pass.typed(g.wide, rows, pass.shard_inner());
    backend.linear_backward_input(branch, s.output_weight.in(weights), dinner, false);
    // The activation's result is not kept but computed again, where its input was.
    backend.activation_backward(pass.config.hidden_act, inner, dinner, dinner, inner);
    backend.linear_backward_weight(branch, inner, s.output_weight.in(arena),
                                   s.output_bias.in(arena), pass.accumulate);
    of_middle.add(i, dinner, s.inner_weight.in(weights));
    backend.linear_backward_weight(dinner, middle_of(pass), s.inner_weight.in(arena),
                                   s.inner_bias.in(arena), pass.accumulate);
  }
  of_middle.finish();

  branch = branch_of(pass.dropout.attention_output);
  backend.add_layer_norm_backward(
      gradient, pass.at(p.attention_sum, rows, h), pass.at(p.attention_stats, rows, 2),
      norms.attention_gamma.in(weights), pass.dropout.attention_output, pass.names(), gradient,
      branch, norms.attention_gamma.in(arena), norms.attention_beta.in(arena), pass.accumulate);
  AttentionBackward(pass, g, weights, arena, input_wanted).run(branch ? branch : gradient);
}

}  // namespace finetune
