// One encoder layer whose norms come before its blocks (ModernBERT). The sum that layers pass on is
// normed where it is read: n1 = LN(x), stream = x + dropout(attention(n1)), n2 = LN(stream), output
// = stream + feed_forward(n2). The model's first layer lacks the first norm.
#include "model/encoder_layer.h"
#include "model/passes/attention_block.h"
#include "model/passes/feed_forward_block.h"

namespace finetune {

void norm_before_forward(const LayerPass& pass, float* weights) {
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& norms = pass.shards[0];
  const int64_t h = pass.config.hidden_size, t = pass.batch.tokens(), rows = pass.rows();
  const float epsilon = float(pass.config.layer_norm_eps);

  Tensor input = pass.at(p.input, t, h), queries = input;
  if (pass.norms_input()) {
    queries = pass.at(p.normed, t, h);
    backend.add_layer_norm(
        input, {}, {}, {}, norms.attention_gamma.in(weights), norms.attention_beta.in(weights),
        epsilon, {}, pass.at(p.normed_stats, t, 2), queries, pass.rounded(p.normed_rounded, t, h));
  }
  Tensor residual = input;
  if (pass.first_only) {
    residual = gather_first(pass, input, p.first);
    queries = pass.norms_input() ? gather_first(pass, queries, p.first_normed) : residual;
  }
  Tensor sum = attention_forward(pass, weights, queries);
  Tensor stream = pass.at(p.stream, rows, h);
  backend.add_layer_norm(sum, residual, pass.dropout.attention_output, pass.names(),
                         norms.output_gamma.in(weights), norms.output_beta.in(weights), epsilon,
                         stream, pass.at(p.attention_stats, rows, 2), pass.at(p.middle, rows, h),
                         pass.rounded(p.middle_rounded, rows, h));
  // In inference `stream` is in the output's memory, in training `sum` is.
  sum = feed_forward(pass, weights);
  Tensor output = pass.at(p.output, rows, h);
  backend.add(sum.data == output.data ? stream : sum, output);
}

// `gradient` is first the gradient of the output, then of the stream, at last of the input.
void norm_before_backward(const LayerPass& pass, const LayerGradients& g, float* weights,
                          float* arena, bool input_wanted) {
  Backend& backend = pass.backend;
  const LayerOffsets& p = pass.offsets;
  const LayerSlots& norms = pass.shards[0];
  const int64_t h = pass.config.hidden_size, t = pass.batch.tokens(), rows = pass.rows();
  Tensor gradient = pass.at(g.gradient, rows, h), normed = pass.at(g.normed, rows, h);

  feed_forward_backward(pass, g, weights, arena, gradient, normed, true);
  backend.add_layer_norm_backward(
      normed, pass.at(p.stream, rows, h), pass.at(p.attention_stats, rows, 2),
      norms.output_gamma.in(weights), {}, {}, normed, {}, norms.output_gamma.in(arena),
      norms.output_beta.in(arena), pass.accumulate);
  backend.add(normed, gradient);

  Tensor branch = gradient;
  if (pass.dropout.attention_output.on()) {
    branch = pass.at(g.branch, rows, h);
    backend.dropout(gradient, pass.dropout.attention_output, pass.names(), branch);
  }
  if (!pass.norms_input()) return attention_backward(pass, g, weights, arena, branch, input_wanted);
  attention_backward(pass, g, weights, arena, branch, true);
  normed = pass.at(pass.first_only ? g.input : g.normed, t, h);
  backend.add_layer_norm_backward(normed, pass.at(p.input, t, h), pass.at(p.normed_stats, t, 2),
                                  norms.attention_gamma.in(weights), {}, {}, normed, {},
                                  norms.attention_gamma.in(arena), norms.attention_beta.in(arena),
                                  pass.accumulate);
  if (!input_wanted) return;
  if (pass.first_only) {
    backend.scatter_rows_add(gradient, pass.batch.first_rows(), normed);
  } else {
    backend.add(normed, gradient);
  }
}

}  // namespace finetune
