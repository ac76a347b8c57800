// Forward and backward pass of the feed-forward block, shard by shard.
#include "model/passes/feed_forward_block.h"

#include <utility>

#include "model/passes/partial_sum.h"

namespace finetune {
namespace {

// The block's input for products: the rounded copy if there is one.
Tensor middle_of(const LayerPass& pass) {
  const int64_t rows = pass.rows(), h = pass.config.hidden_size;
  Tensor rounded = pass.rounded(pass.offsets.middle_rounded, rows, h);
  return rounded ? rounded : pass.at(pass.offsets.middle, rows, h);
}

// The index in the whole block of a shard's first column; dropout masks depend on it.
int64_t first_column(const LayerPass& pass, size_t shard) {
  return (pass.first_shard + int64_t(shard)) * pass.shard_inner();
}

// Layers with norms before their blocks apply the output dropout to the gated activation.
Dropout gate_dropout(const LayerPass& pass) {
  return pass.config.layer.norm_before ? pass.dropout.output : Dropout{};
}

// Computes f(u) * g from the first product (R, 2I/V) into `activated`, or into u if it is there.
Tensor gated(const LayerPass& pass, size_t shard, Tensor before, Tensor activated) {
  if (activated.data == before.data) activated = before.columns(0, pass.shard_inner());
  pass.backend.gated_activation(pass.config.hidden_act, before, gate_dropout(pass), pass.names(),
                                first_column(pass, shard), activated);
  return activated;
}

}  // namespace

Tensor feed_forward(const LayerPass& pass, float* weights) {
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const int64_t rows = pass.rows(), inner = pass.shard_inner();
  const int64_t place = p.output_sum == kAbsent ? p.output : p.output_sum;
  const PartialSum output(pass, pass.at(place, rows, pass.config.hidden_size), pass.partials.all);
  for (size_t i = 0; i < pass.shards.size(); ++i) {
    const LayerSlots& s = pass.shards[i];
    Tensor before = pass.typed(p.shards[i].inner, rows, pass.shard_inner_rows());
    Tensor activated = pass.typed(p.shards[i].activated, rows, inner);
    backend.linear(middle_of(pass), s.inner_weight.in(weights), s.inner_bias.in(weights), before);
    if (pass.config.layer.gated) {
      activated = gated(pass, i, before, activated);
    } else {
      backend.activation(pass.config.hidden_act, before, activated);
    }
    backend.linear(activated, s.output_weight.in(weights), s.output_bias.in(weights), output.of(i));
  }
  return output.add();
}

// For each product the input's gradient is computed before the weight's: the backend may have
// packed the weights into the memory of their gradient (AdamWPart).
void feed_forward_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                           float* arena, Tensor branch, Tensor gradient, bool fresh) {
  Backend& backend = pass.backend;
  const int64_t rows = pass.rows();
  const InputGradient of_middle(pass, gradient, pass.partials.all, fresh);
  for (size_t i = 0; i < pass.shards.size(); ++i) {
    const LayerSlots& s = pass.shards[i];
    Tensor inner = pass.typed(pass.offsets.shards[i].inner, rows, pass.shard_inner_rows());
    Tensor wide = pass.typed(g.wide, rows, pass.shard_inner());
    backend.linear_backward_input(branch, s.output_weight.in(weights), wide, false);
    // The activation's result is kept, or computed again: into its input's memory, or, if it is
    // gated, into its gradient's.
    const int64_t kept = pass.offsets.shards[i].activated;
    Tensor activated = inner, dinner = wide;
    Tensor inner_bias = s.inner_bias.in(arena), output_bias = s.output_bias.in(arena);
    if (pass.sums_with_rows()) output_bias = {};  // the norm has summed it
    if (pass.config.layer.gated) {
      std::swap(activated, dinner);
      backend.gated_activation_backward(pass.config.hidden_act, inner, wide, gate_dropout(pass),
                                        pass.names(), first_column(pass, i), dinner, activated);
    } else {
      const bool is_kept = kept != g.wide, summed = pass.sums_with_rows();
      if (is_kept) activated = pass.typed(kept, rows, pass.shard_inner());
      backend.activation_backward(pass.config.hidden_act, inner, wide, dinner,
                                  is_kept ? Tensor{} : activated, summed ? inner_bias : Tensor{},
                                  pass.accumulate);
      if (summed) inner_bias = {};
    }
    backend.linear_backward_weight(branch, activated, s.output_weight.in(arena), output_bias,
                                   pass.accumulate);
    of_middle.add(i, dinner, s.inner_weight.in(weights));
    backend.linear_backward_weight(dinner, middle_of(pass), s.inner_weight.in(arena), inner_bias,
                                   pass.accumulate);
  }
  of_middle.finish();
}

}  // namespace finetune
