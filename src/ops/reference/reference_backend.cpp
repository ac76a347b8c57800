#include "ops/reference/reference_backend.h"

#include <cstring>
#include <new>
#include <vector>

namespace finetune {

using reference::at;
using reference::check_shape;

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
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t o = 0; o < y.cols; ++o) {
      double sum = bias ? at(bias, 0, o) : 0.0;
      for (int64_t i = 0; i < x.cols; ++i) sum += double(at(x, r, i)) * at(w, o, i);
      at(y, r, o) = float(sum);
    }
  }
}

void ReferenceBackend::linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) {
  check_shape(w, dy.cols, dx.cols);
  check_shape(dx, dy.rows, w.cols);
  std::vector<double> row(static_cast<size_t>(dx.cols));
  for (int64_t r = 0; r < dx.rows; ++r) {
    for (int64_t i = 0; i < dx.cols; ++i) row[size_t(i)] = accumulate ? at(dx, r, i) : 0.0;
    for (int64_t o = 0; o < dy.cols; ++o) {
      for (int64_t i = 0; i < dx.cols; ++i) row[size_t(i)] += double(at(dy, r, o)) * at(w, o, i);
    }
    for (int64_t i = 0; i < dx.cols; ++i) at(dx, r, i) = float(row[size_t(i)]);
  }
}

void ReferenceBackend::linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                                              bool accumulate) {
  check_shape(dw, dy.cols, x.cols);
  check_shape(x, dy.rows, dw.cols);
  if (dbias) check_shape(dbias, 1, dy.cols);
  std::vector<double> row(static_cast<size_t>(x.cols));
  for (int64_t o = 0; o < dw.rows; ++o) {
    for (int64_t i = 0; i < dw.cols; ++i) row[size_t(i)] = accumulate ? at(dw, o, i) : 0.0;
    double bias = dbias && accumulate ? at(dbias, 0, o) : 0.0;
    for (int64_t r = 0; r < x.rows; ++r) {
      double g = at(dy, r, o);
      for (int64_t i = 0; i < dw.cols; ++i) row[size_t(i)] += g * at(x, r, i);
      bias += g;
    }
    for (int64_t i = 0; i < dw.cols; ++i) at(dw, o, i) = float(row[size_t(i)]);
    if (dbias) at(dbias, 0, o) = float(bias);
  }
}

}  // namespace finetune
