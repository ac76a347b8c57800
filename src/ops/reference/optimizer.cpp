// Reference gradient sums, step outcome and AdamW in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numeric/tree_sum.h"
#include "ops/reference/reference_backend.h"

namespace finetune {

using reference::at;
using reference::check_shape;

void ReferenceBackend::merge(std::span<const Addition> additions, int64_t count) {
  for (const Addition& addition : additions) {
    for (int64_t i = 0; i < count; ++i) {
      addition.to[i] = float(double(addition.to[i]) + double(addition.from[i]));
    }
  }
}

void ReferenceBackend::merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t at = rows.rows[i] * cols;
    for (const Addition& addition : additions) {
      const Addition row{addition.to + at, addition.from + at};
      merge({&row, 1}, cols);
      std::fill_n(row.from, cols, 0.0f);
    }
  }
}

void ReferenceBackend::block_square_sums(Tensor x, int64_t block, const SparseRows&, double* sums) {
  check_shape(x, 1, x.cols);
  for (int64_t begin = 0; begin < x.cols; begin += block) {
    double sum = 0;
    for (int64_t i = begin; i < std::min(x.cols, begin + block); ++i) {
      sum += double(at(x, 0, i)) * at(x, 0, i);
    }
    sums[begin / block] = sum;
  }
}

void ReferenceBackend::add_losses(Tensor losses, Tensor weights, bool accumulate, double* sum) {
  check_shape(losses, 1, losses.cols);
  if (weights) check_shape(weights, 1, losses.cols);
  double total = accumulate ? *sum : 0.0;
  for (int64_t i = 0; i < losses.cols; ++i) {
    total += (weights ? double(at(weights, 0, i)) : 1.0) * double(at(losses, 0, i));
  }
  *sum = total;
}

void ReferenceBackend::step_outcome(const StepSums& s, StepOutcome* outcome) {
  *outcome = StepOutcome::of(tree_sum(s.losses, s.shards) / s.denominator,
                             std::sqrt(tree_sum(s.squares, s.blocks)), s.max_norm, s.stop_requests,
                             s.processes);
}

void ReferenceBackend::adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m,
                             Tensor v) {
  const int64_t n = parameter.cols;
  check_shape(parameter, 1, n);
  check_shape(gradient, 1, n);
  check_shape(m, 1, n);
  check_shape(v, 1, n);
  if (options.outcome && !options.outcome->finite) return;
  const double scale = options.outcome ? options.outcome->gradient_scale : options.gradient_scale;
  const double lr = options.learning_rate, beta1 = options.beta1, beta2 = options.beta2;
  const double correction1 = 1.0 - std::pow(beta1, double(options.step));
  const double correction2 = 1.0 - std::pow(beta2, double(options.step));
  for (int64_t i = 0; i < n; ++i) {
    double g = scale * at(gradient, 0, i);
    double first = beta1 * at(m, 0, i) + (1.0 - beta1) * g;
    double second = beta2 * at(v, 0, i) + (1.0 - beta2) * g * g;
    double p = at(parameter, 0, i);
    p -= lr * options.weight_decay * p;
    p -= lr / correction1 * first /
         (std::sqrt(second) / std::sqrt(correction2) + double(options.epsilon));
    at(parameter, 0, i) = float(p);
    at(m, 0, i) = float(first);
    at(v, 0, i) = float(second);
  }
}

void ReferenceBackend::adamw_parts(std::span<const AdamWPart> parts, Tensor parameter,
                                   Tensor gradient, Tensor m, Tensor v) {
  for (const AdamWPart& part : parts) {
    auto of = [&](Tensor t) { return vector(t.f32() + part.begin, part.count); };
    adamw(part.options, of(parameter), of(gradient), of(m), of(v));
  }
}

void ReferenceBackend::adamw_rows(const AdamW& options, RowList rows, Tensor parameter,
                                  Tensor gradient, Tensor m, Tensor v) {
  for (Tensor t : {gradient, m, v}) check_shape(t, parameter.rows, parameter.cols);
  if (options.outcome && !options.outcome->finite) return;
  for (int64_t i = 0; i < rows.count; ++i) {
    auto row = [&](Tensor t) { return t.rows_from(rows.rows[i], 1); };
    adamw(options, row(parameter), row(gradient), row(m), row(v));
    std::fill_n(row(gradient).f32(), gradient.cols, 0.0f);
  }
}

void ReferenceBackend::adamw_catch_up(std::span<const AdamW> steps, RowList rows,
                                      const int32_t* missed, Tensor parameter, Tensor m, Tensor v) {
  for (Tensor t : {m, v}) check_shape(t, parameter.rows, parameter.cols);
  std::vector<float> gradient(size_t(parameter.cols), 0.0f);
  for (int64_t i = 0; i < rows.count; ++i) {
    FINETUNE_CHECK(missed[i] >= 0 && size_t(missed[i]) <= steps.size());
    auto row = [&](Tensor t) { return t.rows_from(rows.rows[i], 1); };
    for (const AdamW& options : steps.last(size_t(missed[i]))) {
      adamw(options, row(parameter), vector(gradient.data(), parameter.cols), row(m), row(v));
    }
  }
}

}  // namespace finetune
