// The operations: checks shapes and calls the module.
#include "ops/attention_masks.h"
#include "ops/cpu/kernels/optimizer.h"
#include "ops/cuda/host/cuda_backend.h"

namespace finetune {
namespace {

// The same factors as on the CPU, so that updates have the same bits.
cuda::AdamWStep factors_of(const AdamW& options) {
  const cpu::AdamWFactors f(options);
  return {f.scale, f.beta1, f.rest1, f.beta2,   f.rest2,
          f.decay, f.rate,  f.root,  f.epsilon, options.outcome};
}

void check_shape(Tensor x, int64_t rows, int64_t cols) {
  FINETUNE_CHECK(x.rows == rows && x.cols == cols);
}
void check_same(Tensor a, Tensor b) {
  check_shape(a, b.rows, b.cols);
}
void check_same_type(Tensor a, std::initializer_list<Tensor> others) {
  for (Tensor t : others) FINETUNE_CHECK(t.dtype == a.dtype);
}
void check_vector(Tensor x, int64_t count) {
  check_shape(x, 1, count);
}

void check_losses(Tensor logits, Tensor losses, Tensor dlogits, int64_t samples) {
  check_shape(losses, 1, samples);
  if (dlogits) check_same(dlogits, logits);
}

void check_arenas(Tensor parameter, std::initializer_list<Tensor> others) {
  FINETUNE_CHECK(parameter.rows == 1 || parameter.contiguous());
  for (Tensor t : others) {
    FINETUNE_CHECK(t.rows == 1 || t.contiguous());
    check_same(t, parameter);
  }
}

}  // namespace

// ---- matrix products ------------------------------------------------------------------------

void CudaBackend::linear(Tensor x, Tensor w, Tensor bias, Tensor y) {
  check_shape(w, y.cols, x.cols);
  check_shape(y, x.rows, w.rows);
  if (bias) check_vector(bias, w.rows);
  call("linear", functions_.linear, x, w, bias, y);
}

void CudaBackend::linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) {
  check_shape(w, dy.cols, dx.cols);
  check_shape(dx, dy.rows, w.cols);
  FINETUNE_CHECK(!accumulate || dx.dtype == DType::f32);
  call("linear_backward_input", functions_.linear_backward_input, dy, w, dx, accumulate);
}

void CudaBackend::linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                         bool accumulate) {
  check_shape(dw, dy.cols, x.cols);
  check_shape(x, dy.rows, dw.cols);
  if (dbias) check_vector(dbias, dy.cols);
  call("linear_backward_weight", functions_.linear_backward_weight, dy, x, dw, dbias, accumulate);
}

// ---- elementwise, rows ------------------------------------------------------------------------

void CudaBackend::activation(Activation f, Tensor x, Tensor y) {
  check_same(y, x);
  check_same_type(x, {y});
  call("activation", functions_.activation, f, x, y);
}

void CudaBackend::activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y,
                                      Tensor sums, bool accumulate) {
  if (sums) check_vector(sums, x.cols);
  check_same(dy, x);
  check_same(dx, x);
  check_same_type(x, {dy, dx});
  if (y) {
    check_same(y, x);
    check_same_type(x, {y});
  }
  call("activation_backward", functions_.activation_backward, f, x, dy, dx, y, sums, accumulate);
}

void CudaBackend::gated_activation(Activation f, Tensor x, Dropout dropout, RowNames names,
                                   int64_t first_column, Tensor y) {
  check_shape(x, y.rows, 2 * y.cols);
  check_same_type(x, {y});
  call("gated_activation", functions_.gated_activation, f, x, dropout, names, first_column, y);
}

void CudaBackend::gated_activation_backward(Activation f, Tensor x, Tensor dy, Dropout dropout,
                                            RowNames names, int64_t first_column, Tensor dx,
                                            Tensor y) {
  check_shape(x, y.rows, 2 * y.cols);
  check_same(dy, y);
  check_same(dx, x);
  check_same_type(x, {dy, dx, y});
  call("gated_activation_backward", functions_.gated_activation_backward, f, x, dy, dropout, names,
       first_column, dx, y);
}

void CudaBackend::rotate(Tensor x, const uint32_t* positions, Tensor table, bool back, Tensor y) {
  check_same(y, x);
  check_same_type(x, {y});
  FINETUNE_CHECK(table.cols % 2 == 0 && x.cols % table.cols == 0);
  call("rotate", functions_.rotate, x, positions, table, back, y);
}

void CudaBackend::segment_mean(Tensor x, Segments segments, Tensor y) {
  check_shape(y, segments.count, x.cols);
  call("segment_mean", functions_.segment_mean, x, segments, y);
}

void CudaBackend::segment_mean_backward(Tensor dy, Segments segments, Tensor dx) {
  check_shape(dy, segments.count, dx.cols);
  call("segment_mean_backward", functions_.segment_mean_backward, dy, segments, dx);
}

void CudaBackend::gather_taps(Tensor x, Segments segments, int64_t taps, Tensor y) {
  check_shape(y, x.rows, x.cols * taps);
  call("gather_taps", functions_.gather_taps, x, segments, taps, y);
}

void CudaBackend::gather_taps_backward(Tensor dy, Segments segments, int64_t taps, Tensor dx) {
  check_shape(dy, dx.rows, dx.cols * taps);
  call("gather_taps_backward", functions_.gather_taps_backward, dy, segments, taps, dx);
}

void CudaBackend::dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) {
  check_same(y, x);
  call("dropout", functions_.dropout, x, dropout, names, y);
}

void CudaBackend::add(Tensor x, Tensor y) {
  check_same(y, x);
  call("add", functions_.add, x, y);
}

void CudaBackend::gather_rows(Tensor x, const int32_t* index, Tensor y) {
  check_shape(y, y.rows, x.cols);
  call("gather_rows", functions_.gather_rows, x, index, y);
}

void CudaBackend::scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) {
  check_shape(x, x.rows, dy.cols);
  call("scatter_rows_add", functions_.scatter_rows_add, dy, index, x);
}

void CudaBackend::scatter_rows(Tensor x, const int32_t* index, Tensor y) {
  check_shape(y, y.rows, x.cols);
  call("scatter_rows", functions_.scatter_rows, x, index, y);
}

// ---- embeddings, layer normalisation --------------------------------------------------------

void CudaBackend::embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                        Tensor word, Tensor position, Tensor type, Tensor y) {
  FINETUNE_CHECK(word.cols == y.cols && (!position || position.cols == y.cols));
  FINETUNE_CHECK(!type || type.cols == y.cols);
  call("embed", functions_.embed, ids, positions, types, word, position, type, y);
}

void CudaBackend::embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                                 const int32_t* types, const int32_t* order, Tensor dword,
                                 Tensor dposition, Tensor dtype) {
  for (Tensor t : {dword, dposition, dtype}) {
    FINETUNE_CHECK(!t || (t.cols == dy.cols && t.contiguous()));
  }
  FINETUNE_CHECK(dword);
  call("embed_backward", functions_.embed_backward, dy, ids, positions, types, order, dword,
       dposition, dtype);
}

void CudaBackend::add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                                 Tensor gamma, Tensor beta, float epsilon, Tensor s, Tensor stats,
                                 Tensor y, Tensor rounded) {
  check_same(y, x);
  if (rounded) check_same(rounded, x);
  check_vector(gamma, x.cols);
  if (beta) check_vector(beta, x.cols);
  if (residual) check_same(residual, x);
  if (s) check_same(s, x);
  if (stats) check_shape(stats, x.rows, 2);
  call("add_layer_norm", functions_.add_layer_norm, x, residual, dropout, names, gamma, beta,
       epsilon, s, stats, y, rounded);
}

void CudaBackend::add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                          Dropout dropout, RowNames names, Tensor ds, Tensor dx,
                                          Tensor dgamma, Tensor dbeta, bool accumulate,
                                          Tensor sums) {
  check_same(dy, s);
  check_same(ds, s);
  check_shape(stats, s.rows, 2);
  for (Tensor t : {gamma, dgamma}) check_vector(t, s.cols);
  for (Tensor t : {dbeta, sums}) {
    if (t) check_vector(t, s.cols);
  }
  if (dx) check_same(dx, s);
  FINETUNE_CHECK(!dx || dx.data != ds.data || !dropout.on());
  call("add_layer_norm_backward", functions_.add_layer_norm_backward, dy, s, stats, gamma, dropout,
       names, ds, dx, dgamma, dbeta, accumulate, sums);
}

// ---- attention --------------------------------------------------------------------------------

namespace {

constexpr int64_t kLargestHead = 128;  // cuda/attention.h

void check_attention(const AttentionShape& shape, Tensor q, Tensor k, Tensor v, Tensor out,
                     Tensor mask) {
  FINETUNE_CHECK(shape.queries.count == shape.keys.count);
  if (shape.head_size > kLargestHead) {
    throw device_error("attention heads of ", shape.head_size, " are more than the ", kLargestHead,
                       " that the GPU's kernels take: use --device cpu");
  }
  check_shape(q, q.rows, shape.heads * shape.head_size);
  check_shape(k, k.rows, q.cols);
  check_same(v, k);
  check_same(out, q);
  FINETUNE_CHECK(!mask ||
                 mask.size() >= attention_mask_floats(shape.heads, q.rows, shape.keys.max_length));
}

void check_pairs(const AttentionShape& shape, Tensor q, Tensor k, Tensor pk, Tensor pq,
                 Tensor scores) {
  FINETUNE_CHECK(shape.queries.count == shape.keys.count && shape.window < 0 && (pk || pq));
  check_shape(q, q.rows, shape.heads * shape.head_size);
  check_shape(k, k.rows, q.cols);
  check_same_type(q, {k});
  for (Tensor table : {pk, pq}) {
    if (table) check_shape(table, table.rows, q.cols);
  }
  check_shape(scores, shape.heads * q.rows, scores.cols);
}

}  // namespace

void CudaBackend::attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                            Tensor v, Tensor out, Tensor lse, Tensor mask) {
  check_attention(shape, q, k, v, out, mask);
  if (lse) check_shape(lse, shape.heads, q.rows);
  check_same_type(q, {k, v, out});
  call("attention", functions_.attention, shape, dropout, q, k, v, out, lse, mask);
}

void CudaBackend::attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q,
                                     Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout,
                                     Tensor dq, Tensor dk, Tensor dv, Tensor mask) {
  check_attention(shape, q, k, v, out, mask);
  check_shape(lse, shape.heads, q.rows);
  check_same(dout, q);
  check_same(dq, q);
  check_same(dk, k);
  check_same(dv, k);
  check_same_type(q, {k, v, out, dout, dq, dk, dv});
  call("attention_backward", functions_.attention_backward, shape, dropout, q, k, v, out, lse, dout,
       dq, dk, dv, mask);
}

void CudaBackend::position_bias(Tensor table, Tensor values) {
  check_shape(table, kPositionBuckets, values.rows);
  call("position_bias", functions_.position_bias, table, values);
}

void CudaBackend::position_bias_backward(Tensor dvalues, Segments keys, Tensor dtable,
                                         bool accumulate) {
  check_shape(dtable, kPositionBuckets, dvalues.rows);
  call("position_bias_backward", functions_.position_bias_backward, dvalues, keys, dtable,
       accumulate);
}

void CudaBackend::pair_scores(const AttentionShape& shape, RelativeRows rows, Tensor q, Tensor k,
                              Tensor pk, Tensor pq, Tensor scores) {
  check_pairs(shape, q, k, pk, pq, scores);
  call("pair_scores", functions_.pair_scores, shape, rows, q, k, pk, pq, scores);
}

void CudaBackend::pair_scores_backward(const AttentionShape& shape, RelativeRows rows,
                                       Tensor dscores, Tensor q, Tensor k, Tensor pk, Tensor pq,
                                       Tensor dq, Tensor dk, Tensor dpk, Tensor dpq) {
  check_pairs(shape, q, k, pk, pq, dscores);
  check_same(dq, q);
  check_same(dk, k);
  check_same_type(q, {dq, dk});
  if (pk) check_same(dpk, pk);
  if (pq) check_same(dpq, pq);
  call("pair_scores_backward", functions_.pair_scores_backward, shape, rows, dscores, q, k, pk, pq,
       dq, dk, dpk, dpq);
}

// ---- losses -------------------------------------------------------------------------------------

void CudaBackend::cross_entropy(Tensor logits, const int32_t* labels, Tensor weights,
                                float smoothing, LossScale scale, Tensor losses, Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  if (weights) check_vector(weights, logits.cols);
  call("cross_entropy", functions_.cross_entropy, logits, labels, weights, smoothing, scale, losses,
       dlogits);
}

void CudaBackend::binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights,
                                       LossScale scale, Tensor losses, Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  check_same(targets, logits);
  if (weights) check_vector(weights, logits.cols);
  call("binary_cross_entropy", functions_.binary_cross_entropy, logits, targets, weights, scale,
       losses, dlogits);
}

void CudaBackend::squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                                Tensor dlogits) {
  check_losses(logits, losses, dlogits, logits.rows);
  FINETUNE_CHECK(logits.cols == 1);
  check_shape(targets, 1, logits.rows);
  call("squared_error", functions_.squared_error, logits, targets, scale, losses, dlogits);
}

void CudaBackend::span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                                     const int32_t* ends, LossScale scale, Tensor losses,
                                     Tensor dlogits) {
  check_losses(logits, losses, dlogits, segments.count);
  FINETUNE_CHECK(logits.cols == 2);
  call("span_cross_entropy", functions_.span_cross_entropy, logits, segments, starts, ends, scale,
       losses, dlogits);
}

// ---- optimizer ----------------------------------------------------------------------------------

void CudaBackend::merge(std::span<const Addition> additions, int64_t count) {
  call("merge", functions_.merge, additions, count);
}

void CudaBackend::merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) {
  call("merge_rows", functions_.merge_rows, additions, rows, cols);
}

void CudaBackend::block_square_sums(Tensor x, int64_t block, const SparseRows& sparse,
                                    double* sums) {
  FINETUNE_CHECK(x.rows == 1 && block > 0);
  call("block_square_sums", functions_.block_square_sums, x, block, sparse, sums);
}

void CudaBackend::add_losses(Tensor losses, Tensor weights, bool accumulate, double* sum) {
  FINETUNE_CHECK(losses.rows == 1);
  if (weights) check_vector(weights, losses.cols);
  call("add_losses", functions_.add_losses, losses, weights, accumulate, sum);
}

void CudaBackend::step_outcome(const StepSums& sums, StepOutcome* outcome) {
  call("step_outcome", functions_.step_outcome, sums, outcome);
}

void CudaBackend::adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                        Tensor v) {
  FINETUNE_CHECK(parameter.rows == 1);
  check_arenas(parameter, {gradient, m, v});
  call("adamw", functions_.adamw, factors_of(options), parameter, gradient, m, v);
}

void CudaBackend::adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient,
                              Tensor m, Tensor v) {
  FINETUNE_CHECK(parameter.rows == 1);
  check_arenas(parameter, {gradient, m, v});
  parts_.clear();
  for (const AdamWPart& part : parts) {
    FINETUNE_CHECK(part.begin >= 0 && part.count >= 0 && part.begin + part.count <= parameter.cols);
    parts_.push_back({factors_of(part.options), part.begin, part.count});
  }
  call("adamw", functions_.adamw_parts, cuda::Items<cuda::AdamWPart>(parts_), parameter, gradient,
       m, v);
}

void CudaBackend::adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient,
                             Tensor m, Tensor v) {
  check_arenas(parameter, {gradient, m, v});
  call("adamw_rows", functions_.adamw_rows, factors_of(options), rows, parameter, gradient, m, v);
}

void CudaBackend::adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                                 Tensor parameter, Tensor m, Tensor v) {
  check_arenas(parameter, {m, v});
  steps_.clear();
  for (const AdamW& step : steps) steps_.push_back(factors_of(step));
  call("adamw_catch_up", functions_.adamw_catch_up, cuda::Items<cuda::AdamWStep>(steps_), rows,
       missed, parameter, m, v);
}

}  // namespace finetune
