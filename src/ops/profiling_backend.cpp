// Forwards every operation and records its time, arithmetic and traffic. Contains the formula of
// each operation.
#include "ops/profiling_backend.h"

#include <initializer_list>
#include <optional>
#include <vector>

#include "core/text/text.h"

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

// An argument that is not a tensor.
template <typename Other>
double bytes_of(const Other&) {
  return 0;
}

double product_flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * double(m) * double(n) * double(k);
}

double floats(double count) {
  return count * sizeof(float);
}

}  // namespace

const char* name_of(Phase phase) {
  return phase == Phase::forward ? "forward" : phase == Phase::backward ? "backward" : "update";
}

struct ProfilingBackend::Work {
  double flops = 0;
  double bytes = 0;
  const char* arrow = nullptr;  // between the sizes that distinguish calls of one operation
  int64_t left = 0, right = 0;
  std::optional<Phase> opens = {};  // the phase that begins with the operation
  std::optional<Phase> ends = {};   // the phase that begins after it
  const char* op = nullptr;         // another operation's name to record it under
};

struct ProfilingBackend::EachTensorOnce {
  template <typename... Arguments>
  static Work of(const Arguments&... arguments) {
    return {.bytes = (bytes_of(arguments) + ...)};
  }
#define OPERATION(name, parameters, arguments) \
  Work name parameters const {                 \
    return of arguments;                       \
  }
#define LAYER_OPERATION OPERATION
#include "ops/operations.inc"
};

// Operations with arithmetic, with a phase, or with traffic other than each tensor once. A function
// here hides the general one of its name above.
struct ProfilingBackend::Formulas : EachTensorOnce {
  Formulas(Backend& backend, bool needed) : backend_(backend), needed_(needed) {}

  Work linear(Tensor x, Tensor w, Tensor bias, Tensor y) const {
    return {product_flops(y.rows, y.cols, x.cols), bytes_of({x, w, bias, y}), " -> ", x.cols,
            y.cols};
  }
  Work linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) const {
    return {product_flops(dy.rows, dx.cols, dy.cols),
            bytes_of({dy, w, dx}) + (accumulate ? bytes_of(dx) : 0), " <- ", dx.cols, dy.cols};
  }
  Work linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias, bool accumulate) const {
    return {product_flops(dy.rows, x.cols, dy.cols),
            bytes_of({dy, x, dw, dbias}) + (accumulate ? bytes_of({dw, dbias}) : 0), " -> ", x.cols,
            dy.cols};
  }

  Work add(Tensor x, Tensor y) const { return {.bytes = bytes_of({x, y, y})}; }
  Work gather_rows(Tensor, const int32_t*, Tensor y) const { return {.bytes = 2 * bytes_of(y)}; }
  Work scatter_rows_add(Tensor dy, const int32_t*, Tensor) const {
    return {.bytes = 3 * bytes_of(dy)};
  }
  Work scatter_rows(Tensor x, const int32_t*, Tensor) const { return {.bytes = 2 * bytes_of(x)}; }

  Work embed(const int32_t*, const uint32_t*, const int32_t*, Tensor, Tensor, Tensor,
             Tensor y) const {
    return {.bytes = 4 * bytes_of(y), .opens = Phase::forward};
  }
  Work embed_backward(Tensor dy, const int32_t*, const uint32_t*, const int32_t*, const int32_t*,
                      Tensor, Tensor, Tensor) const {
    return {.bytes = 7 * bytes_of(dy)};
  }

  Work add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma, Dropout, RowNames,
                               Tensor ds, Tensor dx, Tensor dgamma, Tensor dbeta, bool accumulate,
                               Tensor) const {
    return {.bytes = bytes_of({dy, s, stats, gamma, ds, dx, dgamma, dbeta}) +
                     (accumulate ? bytes_of({dgamma, dbeta}) : 0)};
  }

  Work attention(const AttentionShape& shape, Dropout, Tensor q, Tensor k, Tensor v, Tensor out,
                 Tensor lse, Tensor) const {
    return {4 * scores(shape), bytes_of({q, k, v, out, lse})};
  }
  Work attention_backward(const AttentionShape& shape, Dropout, Tensor q, Tensor k, Tensor v,
                          Tensor out, Tensor lse, Tensor dout, Tensor dq, Tensor dk, Tensor dv,
                          Tensor) const {
    return {8 * scores(shape), bytes_of({q, k, v, out, lse, dout, dq, dk, dv})};
  }

  Work pair_scores(const AttentionShape& shape, RelativeRows, Tensor q, Tensor k, Tensor pk,
                   Tensor pq, Tensor) const {
    return {2 * (bool(pk) + bool(pq)) * scores(shape), bytes_of({q, k, pk, pq})};
  }
  Work pair_scores_backward(const AttentionShape& shape, RelativeRows, Tensor, Tensor q, Tensor k,
                            Tensor pk, Tensor pq, Tensor dq, Tensor dk, Tensor dpk,
                            Tensor dpq) const {
    return {4 * (bool(pk) + bool(pq)) * scores(shape),
            bytes_of({q, k, pk, pq, dq, dq, dk, dk, dpk, dpq})};
  }

  Work position_bias(Tensor, Tensor values) const { return {.bytes = 2 * bytes_of(values)}; }
  Work position_bias_backward(Tensor dvalues, Segments, Tensor dtable, bool accumulate) const {
    return {.bytes = bytes_of({dvalues, dtable}) + (accumulate ? bytes_of(dtable) : 0)};
  }

  Work self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                      Tensor bias, Tensor context) const {
    const int64_t h = x.cols;
    const double products = product_flops(x.rows, 2 * h, h) + product_flops(context.rows, h, h);
    return {products + 4 * scores(shape), bytes_of({x, first, weight, bias, context})};
  }
  Work layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y) const {
    const int64_t h = y.cols;
    return {product_flops(y.rows, h, h) + 2 * product_flops(y.rows, layer.inner(), h),
            bytes_of({layer.attention_weight, layer.inner_weight, layer.output_weight, context,
                      residual, y})};
  }

  Work cross_entropy(Tensor logits, const int32_t*, Tensor, float, LossScale, Tensor losses,
                     Tensor dlogits) const {
    return loss({logits, losses, dlogits});
  }
  Work binary_cross_entropy(Tensor logits, Tensor targets, Tensor, LossScale, Tensor losses,
                            Tensor dlogits) const {
    return loss({logits, targets, losses, dlogits});
  }
  Work squared_error(Tensor logits, Tensor targets, LossScale, Tensor losses,
                     Tensor dlogits) const {
    return loss({logits, targets, losses, dlogits});
  }
  Work span_cross_entropy(Tensor logits, Segments, const int32_t*, const int32_t*, LossScale,
                          Tensor losses, Tensor dlogits) const {
    return loss({logits, losses, dlogits});
  }

  Work merge(std::span<const Addition> additions, int64_t count) const {
    return {.bytes = 3 * floats(double(count)) * double(additions.size()), .opens = Phase::update};
  }
  Work merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) const {
    return {.bytes = 4 * floats(double(rows.count * cols)) * double(additions.size()),
            .opens = Phase::update};
  }
  Work block_square_sums(Tensor x, int64_t, const SparseRows& sparse, double*) const {
    const double read = sparse.cols == 0
                            ? bytes_of(x)
                            : floats(double(sparse.first + sparse.nonzero.count * sparse.cols));
    return {.bytes = read, .opens = Phase::update};
  }
  Work step_outcome(const StepSums& sums, StepOutcome*) const {
    return {.bytes = double(sums.shards + sums.blocks) * sizeof(double)};
  }
  Work adamw(const AdamW&, Tensor parameter, Tensor gradient, Tensor m, Tensor v) const {
    return {.bytes = 2 * bytes_of({parameter, m, v}) + bytes_of(gradient)};
  }
  Work adamw_parts(std::span<const AdamWPart> parts, Tensor, Tensor, Tensor, Tensor) const {
    double elements = 0;
    for (const AdamWPart& part : parts) elements += double(part.count);
    return {.bytes = 7 * floats(elements), .op = "adamw"};
  }
  Work adamw_rows(const AdamW&, RowList rows, Tensor parameter, Tensor, Tensor, Tensor) const {
    return {.bytes = 8 * floats(double(rows.count * parameter.cols))};
  }
  // Most rows have zero moments, which are read but not written.
  Work adamw_catch_up(std::span<const AdamW>, RowList rows, const int32_t*, Tensor parameter,
                      Tensor, Tensor) const {
    return {.bytes = 4 * floats(double(rows.count * parameter.cols)), .opens = Phase::update};
  }

 private:
  static Work loss(std::initializer_list<Tensor> tensors) {
    return {.bytes = bytes_of(tensors), .ends = Phase::backward};
  }
  // Pairs of a query and a key over all sequences and heads, times the head size.
  double scores(const AttentionShape& shape) const;

  Backend& backend_;
  bool needed_;  // false: nothing is downloaded
};

double ProfilingBackend::Formulas::scores(const AttentionShape& shape) const {
  if (!needed_) return 0;
  std::vector<int32_t> queries(size_t(shape.queries.count) + 1), keys(queries.size());
  backend_.download(queries.data(), shape.queries.offsets, queries.size() * sizeof(int32_t));
  backend_.download(keys.data(), shape.keys.offsets, keys.size() * sizeof(int32_t));
  double pairs = 0;
  for (size_t b = 0; b + 1 < keys.size(); ++b) {
    const int64_t count = queries[b + 1] - queries[b], all = keys[b + 1] - keys[b];
    if (shape.window < 0) {
      pairs += double(count) * double(all);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) pairs += double(shape.end_key(i, all) - shape.first_key(i));
  }
  return pairs * double(shape.heads * shape.head_size);
}

template <typename Call>
void ProfilingBackend::record(const char* op, const Work& work, Call&& call) {
  phase_ = work.opens.value_or(phase_);
  if (recording_) {
    const double start = seconds_now(clock_);
    call();
    inner_->synchronize();
    const double seconds = seconds_now(clock_) - start;
    const std::string detail = work.arrow ? concat(work.left, work.arrow, work.right) : "";
    profile_[{phase_, work.op ? work.op : op, detail}] += {1, seconds, work.flops, work.bytes};
  } else {
    call();
  }
  phase_ = work.ends.value_or(phase_);
}

void ProfilingBackend::upload(void* to, const void* host, size_t bytes) {
  record("upload", {.bytes = 2.0 * double(bytes)}, [&] { inner_->upload(to, host, bytes); });
}

void ProfilingBackend::download(void* host, const void* from, size_t bytes) {
  record("download", {.bytes = 2.0 * double(bytes)}, [&] { inner_->download(host, from, bytes); });
}

void ProfilingBackend::fill_zero(Tensor x) {
  record("fill_zero", {.bytes = bytes_of(x)}, [&] { inner_->fill_zero(x); });
}

#define OPERATION(name, parameters, arguments)                                                    \
  void ProfilingBackend::name parameters {                                                        \
    record(#name, Formulas(*inner_, recording_).name arguments, [&] { inner_->name arguments; }); \
  }
#define LAYER_OPERATION OPERATION
#include "ops/operations.inc"

}  // namespace finetune
