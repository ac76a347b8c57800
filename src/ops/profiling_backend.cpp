#include "ops/profiling_backend.h"

#include <initializer_list>
#include <vector>

#include "core/text.h"

namespace finetune {
namespace {

double bytes_of(Tensor t) {
  return t ? double(t.size()) * double(size_of(t.dtype)) : 0;
}

double bytes_of(std::initializer_list<Tensor> tensors) {
  double sum = 0;
  for (const Tensor& t : tensors) sum += bytes_of(t);
  return sum;
}

double product_flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * double(m) * double(n) * double(k);
}

}  // namespace

const char* name_of(Phase phase) {
  return phase == Phase::forward ? "forward" : phase == Phase::backward ? "backward" : "update";
}

template <typename Call>
void ProfilingBackend::record(const char* op, const Work& work, Call&& call) {
  if (!recording_) return call();
  const double start = seconds_now(clock_);
  call();
  inner_->synchronize();
  const double seconds = seconds_now(clock_) - start;
  const std::string detail = work.arrow ? concat(work.left, work.arrow, work.right) : "";
  profile_[{phase_, op, detail}] += {1, seconds, work.flops, work.bytes};
}

// Pairs of a query and a key, over all sequences and heads, times the size of a head.
double ProfilingBackend::scores(const AttentionShape& shape) {
  if (!recording_) return 0;
  std::vector<int32_t> queries(size_t(shape.queries.count) + 1), keys(queries.size());
  inner_->download(queries.data(), shape.queries.offsets, queries.size() * sizeof(int32_t));
  inner_->download(keys.data(), shape.keys.offsets, keys.size() * sizeof(int32_t));
  double pairs = 0;
  for (size_t b = 0; b + 1 < keys.size(); ++b) {
    pairs += double(queries[b + 1] - queries[b]) * double(keys[b + 1] - keys[b]);
  }
  return pairs * double(shape.heads * shape.head_size);
}

void ProfilingBackend::upload(void* to, const void* host, size_t bytes) {
  record("upload", {0, 2.0 * double(bytes)}, [&] { inner_->upload(to, host, bytes); });
}

void ProfilingBackend::download(void* host, const void* from, size_t bytes) {
  record("download", {0, 2.0 * double(bytes)}, [&] { inner_->download(host, from, bytes); });
}

void ProfilingBackend::fill_zero(Tensor x) {
  record("fill_zero", {0, bytes_of(x)}, [&] { inner_->fill_zero(x); });
}

void ProfilingBackend::linear(Tensor x, Tensor w, Tensor bias, Tensor y) {
  record("linear",
         {product_flops(y.rows, y.cols, x.cols), bytes_of({x, w, bias, y}), " -> ", x.cols, y.cols},
         [&] { inner_->linear(x, w, bias, y); });
}

void ProfilingBackend::linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) {
  record("linear_backward_input",
         {product_flops(dy.rows, dx.cols, dy.cols),
          bytes_of({dy, w, dx}) + (accumulate ? bytes_of(dx) : 0), " <- ", dx.cols, dy.cols},
         [&] { inner_->linear_backward_input(dy, w, dx, accumulate); });
}

void ProfilingBackend::linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                              bool accumulate) {
  record("linear_backward_weight",
         {product_flops(dy.rows, x.cols, dy.cols),
          bytes_of({dy, x, dw, dbias}) + (accumulate ? bytes_of({dw, dbias}) : 0), " -> ", x.cols,
          dy.cols},
         [&] { inner_->linear_backward_weight(dy, x, dw, dbias, accumulate); });
}

void ProfilingBackend::activation(Activation f, Tensor x, Tensor y) {
  record("activation", {0, bytes_of({x, y})}, [&] { inner_->activation(f, x, y); });
}

void ProfilingBackend::activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y) {
  record("activation_backward", {0, bytes_of({x, dy, dx, y})},
         [&] { inner_->activation_backward(f, x, dy, dx, y); });
}

void ProfilingBackend::dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) {
  record("dropout", {0, bytes_of({x, y})}, [&] { inner_->dropout(x, dropout, names, y); });
}

void ProfilingBackend::add(Tensor x, Tensor y) {
  record("add", {0, bytes_of({x, y, y})}, [&] { inner_->add(x, y); });
}

void ProfilingBackend::gather_rows(Tensor x, const int32_t* index, Tensor y) {
  record("gather_rows", {0, bytes_of({y, y})}, [&] { inner_->gather_rows(x, index, y); });
}

void ProfilingBackend::scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) {
  record("scatter_rows_add", {0, bytes_of({dy, dy, dy})},
         [&] { inner_->scatter_rows_add(dy, index, x); });
}

void ProfilingBackend::scatter_rows(Tensor x, const int32_t* index, Tensor y) {
  record("scatter_rows", {0, bytes_of({x, x})}, [&] { inner_->scatter_rows(x, index, y); });
}

void ProfilingBackend::embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                             Tensor word, Tensor position, Tensor type, Tensor y) {
  phase_ = Phase::forward;
  record("embed", {0, bytes_of({y, y, y, y})},
         [&] { inner_->embed(ids, positions, types, word, position, type, y); });
}

void ProfilingBackend::embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                                      const int32_t* types, const int32_t* order, Tensor dword,
                                      Tensor dposition, Tensor dtype) {
  record("embed_backward", {0, 7 * bytes_of(dy)}, [&] {
    inner_->embed_backward(dy, ids, positions, types, order, dword, dposition, dtype);
  });
}

void ProfilingBackend::add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names,
                                      Tensor gamma, Tensor beta, float epsilon, Tensor s,
                                      Tensor stats, Tensor y, Tensor rounded) {
  record("add_layer_norm", {0, bytes_of({x, residual, gamma, beta, s, stats, y, rounded})}, [&] {
    inner_->add_layer_norm(x, residual, dropout, names, gamma, beta, epsilon, s, stats, y, rounded);
  });
}

void ProfilingBackend::add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma,
                                               Dropout dropout, RowNames names, Tensor ds,
                                               Tensor dx, Tensor dgamma, Tensor dbeta,
                                               bool accumulate) {
  record("add_layer_norm_backward",
         {0, bytes_of({dy, s, stats, gamma, ds, dx, dgamma, dbeta}) +
                 (accumulate ? bytes_of({dgamma, dbeta}) : 0)},
         [&] {
           inner_->add_layer_norm_backward(dy, s, stats, gamma, dropout, names, ds, dx, dgamma,
                                           dbeta, accumulate);
         });
}

void ProfilingBackend::attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                                 Tensor v, Tensor out, Tensor lse) {
  record("attention", {4 * scores(shape), bytes_of({q, k, v, out, lse})},
         [&] { inner_->attention(shape, dropout, q, k, v, out, lse); });
}

void ProfilingBackend::attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q,
                                          Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout,
                                          Tensor dq, Tensor dk, Tensor dv) {
  record("attention_backward", {8 * scores(shape), bytes_of({q, k, v, out, lse, dout, dq, dk, dv})},
         [&] { inner_->attention_backward(shape, dropout, q, k, v, out, lse, dout, dq, dk, dv); });
}

void ProfilingBackend::self_attention(const AttentionShape& shape, Tensor x, Tensor first,
                                      Tensor weight, Tensor bias, Tensor context) {
  const int64_t h = x.cols;
  const double products = product_flops(x.rows, 2 * h, h) + product_flops(context.rows, h, h);
  record("self_attention",
         {products + 4 * scores(shape), bytes_of({x, first, weight, bias, context})},
         [&] { inner_->self_attention(shape, x, first, weight, bias, context); });
}

void ProfilingBackend::layer_output(const LayerOutput& layer, Tensor context, Tensor residual,
                                    Tensor y) {
  const int64_t h = y.cols;
  record("layer_output",
         {product_flops(y.rows, h, h) + 2 * product_flops(y.rows, layer.inner(), h),
          bytes_of({layer.attention_weight, layer.inner_weight, layer.output_weight, context,
                    residual, y})},
         [&] { inner_->layer_output(layer, context, residual, y); });
}

void ProfilingBackend::cross_entropy(Tensor logits, const int32_t* labels, Tensor weights,
                                     float smoothing, LossScale scale, Tensor losses,
                                     Tensor dlogits) {
  record("cross_entropy", {0, bytes_of({logits, losses, dlogits})}, [&] {
    inner_->cross_entropy(logits, labels, weights, smoothing, scale, losses, dlogits);
  });
  phase_ = Phase::backward;
}

void ProfilingBackend::binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights,
                                            LossScale scale, Tensor losses, Tensor dlogits) {
  record("binary_cross_entropy", {0, bytes_of({logits, targets, losses, dlogits})},
         [&] { inner_->binary_cross_entropy(logits, targets, weights, scale, losses, dlogits); });
  phase_ = Phase::backward;
}

void ProfilingBackend::squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                                     Tensor dlogits) {
  record("squared_error", {0, bytes_of({logits, targets, losses, dlogits})},
         [&] { inner_->squared_error(logits, targets, scale, losses, dlogits); });
  phase_ = Phase::backward;
}

void ProfilingBackend::span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                                          const int32_t* ends, LossScale scale, Tensor losses,
                                          Tensor dlogits) {
  record("span_cross_entropy", {0, bytes_of({logits, losses, dlogits})}, [&] {
    inner_->span_cross_entropy(logits, segments, starts, ends, scale, losses, dlogits);
  });
  phase_ = Phase::backward;
}

void ProfilingBackend::merge(std::span<const Addition> additions, int64_t count) {
  phase_ = Phase::update;
  record("merge", {0, 3 * 4.0 * double(count) * double(additions.size())},
         [&] { inner_->merge(additions, count); });
}

void ProfilingBackend::merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) {
  phase_ = Phase::update;
  record("merge_rows", {0, 4 * 4.0 * double(rows.count * cols) * double(additions.size())},
         [&] { inner_->merge_rows(additions, rows, cols); });
}

void ProfilingBackend::block_square_sums(Tensor x, int64_t block, const SparseRows& sparse,
                                         double* sums) {
  phase_ = Phase::update;
  const double read = sparse.cols == 0
                          ? bytes_of(x)
                          : 4.0 * double(sparse.first + sparse.nonzero.count * sparse.cols);
  record("block_square_sums", {0, read},
         [&] { inner_->block_square_sums(x, block, sparse, sums); });
}

void ProfilingBackend::add_losses(Tensor losses, bool accumulate, double* sum) {
  record("add_losses", {0, bytes_of(losses)}, [&] { inner_->add_losses(losses, accumulate, sum); });
}

void ProfilingBackend::step_outcome(const StepSums& sums, StepOutcome* outcome) {
  record("step_outcome", {0, 8.0 * double(sums.shards + sums.blocks)},
         [&] { inner_->step_outcome(sums, outcome); });
}

void ProfilingBackend::adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                             Tensor v) {
  record("adamw", {0, 2 * bytes_of({parameter, m, v}) + bytes_of(gradient)},
         [&] { inner_->adamw(options, parameter, gradient, m, v); });
}

void ProfilingBackend::adamw_parts(std::span<const AdamWPart> parts, Tensor parameter,
                                   Tensor gradient, Tensor m, Tensor v) {
  double elements = 0;
  for (const AdamWPart& part : parts) elements += double(part.count);
  record("adamw", {0, 7 * 4.0 * elements},
         [&] { inner_->adamw_parts(parts, parameter, gradient, m, v); });
}

void ProfilingBackend::adamw_rows(const AdamW& options, RowList rows, Tensor parameter,
                                  Tensor gradient, Tensor m, Tensor v) {
  record("adamw_rows", {0, 8 * 4.0 * double(rows.count * parameter.cols)},
         [&] { inner_->adamw_rows(options, rows, parameter, gradient, m, v); });
}

// Most rows have no moments, which are then read and not written.
void ProfilingBackend::adamw_catch_up(std::span<const AdamW> steps, RowList rows,
                                      const int32_t* missed, Tensor parameter, Tensor m, Tensor v) {
  phase_ = Phase::update;
  record("adamw_catch_up", {0, 4 * 4.0 * double(rows.count * parameter.cols)},
         [&] { inner_->adamw_catch_up(steps, rows, missed, parameter, m, v); });
}

}  // namespace finetune
