// Forward and backward pass of the attention block, shard by shard.
#include "model/passes/attention_block.h"

#include <cmath>

#include "model/passes/partial_sum.h"
#include "model/positions/relative_positions.h"
#include "ops/attention_masks.h"

namespace finetune {
namespace {

// Queries, keys and values lie side by side; if only first tokens have queries, these lie apart.
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

// The rows of the fused projection that compute queries, and those for keys and values.
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

// The block's input for products: the rounded copy if there is one.
Tensor input_of(const LayerPass& pass) {
  const int64_t t = pass.batch.tokens(), h = pass.config.hidden_size;
  const LayerOffsets& p = pass.offsets;
  const bool normed = pass.norms_input();
  Tensor rounded = pass.rounded(normed ? p.normed_rounded : p.input_rounded, t, h);
  return rounded ? rounded : pass.at(normed ? p.normed : p.input, t, h);
}

// Rotates queries and keys, or with `back` their gradients in reverse. First tokens' queries have
// position 0, which does not rotate.
void rotate(const LayerPass& pass, int64_t wide_offset, bool back) {
  if (!pass.rotation) return;
  const int64_t t = pass.batch.tokens(), width = pass.shard_width();
  Tensor x = pass.typed(wide_offset, t, (pass.first_only ? 2 : 3) * width);
  x = x.columns(0, (pass.first_only ? 1 : 2) * width);
  pass.backend.rotate(x, pass.batch.positions(), pass.rotation, back, x);
}

// The memory of attention's dropout mask; absent if it is not kept.
Tensor mask_of(const LayerPass& pass, size_t shard) {
  const int64_t place = pass.offsets.shards[shard].mask;
  return place == kAbsent ? Tensor{}
                          : pass.at(place, 1,
                                    attention_mask_floats(pass.shard_heads(), pass.rows(),
                                                          pass.batch.segments().max_length));
}

void shard_forward(const LayerPass& pass, size_t shard, float* weights, Tensor queries) {
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
    backend.linear(queries, query_rows(weight), query_part(bias), heads.q);
  } else {
    backend.linear(input, weight, bias, pass.typed(p.qkv, t, 3 * width));
  }
  rotate(pass, p.qkv, false);
  Tensor log_sums = pass.at(p.log_sums, pass.shard_heads(), pass.rows());
  if (pass.config.relative.on()) {
    return RelativeAttention(pass, shard, weights)
        .forward(heads, pass.typed(p.context, pass.rows(), width), log_sums);
  }
  backend.attention(attention_shape(pass, shard), pass.dropout.attention, heads.q, heads.k, heads.v,
                    pass.typed(p.context, pass.rows(), width), log_sums, mask_of(pass, shard));
}

// The backward pass through the shards' attention and fused projections: from the gradient of the
// output of attention's dense layer to the gradient of the block's input.
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
        into_(pass.norms_input() ? pass.at(g.normed, pass.rows(), pass.config.hidden_size)
                                 : gradient_),
        of_queries_(pass, into_, pass.first_only ? pass.partials.first : pass.partials.all,
                    pass.norms_input()),
        of_keys_(pass, dinput_, pass.partials.all) {}

  void run(Tensor branch) const {
    for (size_t i = 0; i < pass_.shards.size(); ++i) {
      attention(i, branch);
      pass_.first_only ? first_projection(i) : projection(i);
      if (pass_.config.relative.on()) {
        RelativeAttention(pass_, i, weights_).project_back(arena_);
      }
    }
    if (!input_wanted_) return;
    if (pass_.first_only) of_keys_.add();
    of_queries_.finish();
    if (pass_.first_only) {
      pass_.backend.scatter_rows_add(into_, pass_.batch.first_rows(), dinput_);
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
    const Heads heads = heads_at(pass_, p.first_query, p.qkv);
    const Heads dheads = heads_at(pass_, g_.query, g_.qkv);
    Tensor log_sums = pass_.at(p.log_sums, pass_.shard_heads(), rows);
    if (pass_.config.relative.on()) {
      RelativeAttention(pass_, shard, weights_)
          .backward(heads, dheads, context, dcontext, log_sums);
    } else {
      backend.attention_backward(attention_shape(pass_, shard), pass_.dropout.attention, heads.q,
                                 heads.k, heads.v, context, log_sums, dcontext, dheads.q, dheads.k,
                                 dheads.v, mask_of(pass_, shard));
      rotate(pass_, g_.qkv, true);
      add_bias_gradient(shard);
    }
    // After attention, which reads the context, too: a backend with a second stream makes readers
    // of the same memory wait for each other.
    backend.linear_backward_weight(branch, context, s.attention_weight.in(arena_),
                                   pass_.sums_with_rows() ? Tensor{} : s.attention_bias.in(arena_),
                                   pass_.accumulate);
  }

  void add_bias_gradient(size_t shard) const {
    const LayerBias& bias = pass_.bias;
    if (bias.gradient == kAbsent) return;
    const int64_t heads = pass_.shard_heads(), table = kPositionBuckets * heads * int64_t(shard);
    pass_.backend.position_bias_backward(
        pass_.at(bias.gradient, heads, 2 * pass_.batch.tokens()), pass_.batch.segments(),
        pass_.at(bias.table + table, kPositionBuckets, heads), bias.accumulate);
  }

  void projection(size_t shard) const {
    const LayerSlots& s = pass_.shards[shard];
    Tensor dqkv = pass_.typed(g_.qkv, pass_.batch.tokens(), 3 * pass_.shard_width());
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
    Tensor dkv = pass_.typed(g_.qkv, pass_.batch.tokens(), 2 * width);
    if (input_wanted_) {
      backend.linear_backward_input(dkv, key_value_rows(weight), of_keys_.of(shard), false);
      of_queries_.add(shard, dq, query_rows(weight));
    }
    const LayerOffsets& p = pass_.offsets;
    const int64_t first = pass_.norms_input() ? p.first_normed : p.first;
    backend.linear_backward_weight(dq, pass_.at(first, rows, weight.cols), query_rows(dweight),
                                   query_part(dbias), pass_.accumulate);
    backend.linear_backward_weight(dkv, input_of(pass_), key_value_rows(dweight),
                                   key_value_part(dbias), pass_.accumulate);
  }

  const LayerPass& pass_;
  const LayerGradients& g_;
  float* weights_;
  float* arena_;
  bool input_wanted_;
  Tensor gradient_, dinput_, into_;
  InputGradient of_queries_;  // of queries, keys and values if they are one product
  PartialSum of_keys_;        // of keys and values if queries are apart
};

}  // namespace

AttentionShape attention_shape(const LayerPass& pass, size_t shard) {
  AttentionShape shape;
  shape.heads = pass.shard_heads();
  shape.first_head = (pass.first_shard + int64_t(shard)) * shape.heads;
  shape.head_size = pass.config.head_size();
  const int64_t terms = pass.config.layer.score_terms;
  shape.scale = float(1.0 / std::sqrt(double(shape.head_size * terms)));
  shape.keys = pass.batch.segments();
  shape.queries = pass.first_only ? pass.batch.first_segments() : shape.keys;
  shape.samples = pass.batch.samples();
  shape.window = pass.window;
  const LayerBias& bias = pass.bias;
  if (bias.values == kAbsent) return shape;
  const int64_t of_shard = shape.heads * (2 * bias.span - 1);
  shape.bias.values = pass.memory + bias.values + int64_t(shard) * of_shard;
  shape.bias.span = bias.span;
  if (bias.gradient == kAbsent) return shape;
  shape.bias.gradient = pass.memory + bias.gradient;
  shape.bias.gradient_stride = 2 * pass.batch.tokens();
  return shape;
}

Tensor gather_first(const LayerPass& pass, Tensor from, int64_t to) {
  Tensor first = pass.at(to, pass.rows(), from.cols);
  pass.backend.gather_rows(from, pass.batch.first_rows(), first);
  return first;
}

Tensor attention_forward(const LayerPass& pass, float* weights, Tensor queries) {
  const int64_t rows = pass.rows();
  const PartialSum projected(pass, pass.at(pass.offsets.attention_sum, rows, queries.cols),
                             pass.partials.all);
  for (size_t i = 0; i < pass.shards.size(); ++i) {
    const LayerSlots& s = pass.shards[i];
    shard_forward(pass, i, weights, queries);
    pass.backend.linear(pass.typed(pass.offsets.shards[i].context, rows, pass.shard_width()),
                        s.attention_weight.in(weights), s.attention_bias.in(weights),
                        projected.of(i));
  }
  return projected.add();
}

void attention_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                        float* arena, Tensor branch, bool input_wanted) {
  AttentionBackward(pass, g, weights, arena, input_wanted).run(branch);
}

}  // namespace finetune
