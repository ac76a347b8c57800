// The reference backend's memory, copies and linear layers.
#include "ops/reference/reference_backend.h"

#include <cstring>
#include <new>
#include <vector>

namespace finetune {

using reference::at;
using reference::check_shape;
using reference::values_of;

namespace {

// sums[i] += factor * row[i]
void add_scaled(double factor, const float* row, std::vector<double>& sums) {
  double* const to = sums.data();
  const size_t count = sums.size();
  for (size_t i = 0; i < count; ++i) to[i] += factor * double(row[i]);
}

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

std::shared_ptr<void> ReferenceBackend::allocate(size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  void* memory = ::operator new(bytes, kAlignment);
  std::memset(memory, 0, bytes);
  return {memory, [](void* p) { ::operator delete(p, kAlignment); }};
}

void ReferenceBackend::upload(void* to, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(to, host, bytes);
}

void ReferenceBackend::download(void* host, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(host, from, bytes);
}

void ReferenceBackend::fill_zero(Tensor x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) at(x, r, c) = 0;
  }
}

void ReferenceBackend::linear(Tensor x, Tensor w, Tensor bias, Tensor y) {
  check_shape(w, y.cols, x.cols);
  check_shape(y, x.rows, w.rows);
  if (bias) check_shape(bias, 1, w.rows);
  // Each sum is in the order of x's columns; the sums of a row advance side by side, so that none
  // waits for its own result.
  const std::vector<float> inputs = values_of(x), weights = values_of(w);
  std::vector<float> turned(weights.size());  // (x.cols, y.cols)
  for (int64_t o = 0; o < w.rows; ++o) {
    for (int64_t i = 0; i < w.cols; ++i)
      turned[size_t(i * w.rows + o)] = weights[size_t(o * w.cols + i)];
  }
  std::vector<double> row(static_cast<size_t>(y.cols));
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t o = 0; o < y.cols; ++o) row[size_t(o)] = bias ? at(bias, 0, o) : 0.0;
    for (int64_t i = 0; i < x.cols; ++i) {
      add_scaled(inputs[size_t(r * x.cols + i)], turned.data() + i * w.rows, row);
    }
    for (int64_t o = 0; o < y.cols; ++o) at(y, r, o) = float(row[size_t(o)]);
  }
}

void ReferenceBackend::linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) {
  check_shape(w, dy.cols, dx.cols);
  check_shape(dx, dy.rows, w.cols);
  const std::vector<float> weights = values_of(w);
  std::vector<double> row(static_cast<size_t>(dx.cols));
  for (int64_t r = 0; r < dx.rows; ++r) {
    for (int64_t i = 0; i < dx.cols; ++i) row[size_t(i)] = accumulate ? at(dx, r, i) : 0.0;
    for (int64_t o = 0; o < dy.cols; ++o) {
      add_scaled(at(dy, r, o), weights.data() + o * w.cols, row);
    }
    for (int64_t i = 0; i < dx.cols; ++i) at(dx, r, i) = float(row[size_t(i)]);
  }
}

void ReferenceBackend::linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                              bool accumulate) {
  check_shape(dw, dy.cols, x.cols);
  check_shape(x, dy.rows, dw.cols);
  if (dbias) check_shape(dbias, 1, dy.cols);
  const std::vector<float> inputs = values_of(x);
  std::vector<double> row(static_cast<size_t>(x.cols));
  for (int64_t o = 0; o < dw.rows; ++o) {
    for (int64_t i = 0; i < dw.cols; ++i) row[size_t(i)] = accumulate ? at(dw, o, i) : 0.0;
    double bias = dbias && accumulate ? at(dbias, 0, o) : 0.0;
    for (int64_t r = 0; r < x.rows; ++r) {
      double g = at(dy, r, o);
      add_scaled(g, inputs.data() + r * x.cols, row);
      bias += g;
    }
    for (int64_t i = 0; i < dw.cols; ++i) at(dw, o, i) = float(row[size_t(i)]);
    if (dbias) at(dbias, 0, o) = float(bias);
  }
}

}  // namespace finetune
