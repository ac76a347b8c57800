// Reference activations, dropout, rows and embeddings in double precision.
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/reference/reference_backend.h"

namespace finetune {
namespace {

using reference::at;
using reference::check_shape;

constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

double value(Activation f, double x) {
  switch (f) {
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
    case Activation::relu:
      return x > 0 ? x : 0.0;
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
  }
  return 0;
}

double derivative(Activation f, double x) {
  switch (f) {
    case Activation::gelu: {
      double density = std::exp(-0.5 * x * x) / (std::numbers::sqrt2 / std::numbers::inv_sqrtpi);
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
    }
    case Activation::gelu_tanh: {
      double t = std::tanh(kTanhScale * (x + kTanhCubic * x * x * x));
      return 0.5 * (1.0 + t) +
             0.5 * x * (1.0 - t * t) * kTanhScale * (1.0 + 3.0 * kTanhCubic * x * x);
    }
    case Activation::relu:
      return x > 0 ? 1.0 : 0.0;
    case Activation::silu: {
      double s = sigmoid(x);
      return s * (1.0 + x * (1.0 - s));
    }
    case Activation::tanh: {
      double t = std::tanh(x);
      return 1.0 - t * t;
    }
  }
  return 0;
}

}  // namespace

void ReferenceBackend::activation(Activation f, Tensor x, Tensor y) {
  check_shape(y, x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) at(y, r, c) = float(value(f, at(x, r, c)));
  }
}

void ReferenceBackend::activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y) {
  check_shape(dy, x.rows, x.cols);
  check_shape(dx, x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) {
      at(dx, r, c) = float(at(dy, r, c) * derivative(f, at(x, r, c)));
    }
  }
  if (y) activation(f, x, y);
}

void ReferenceBackend::dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) {
  dropout = dropout.taken();
  check_shape(y, x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) {
      at(y, r, c) = float(at(x, r, c) * reference::mask(dropout, names, r, c));
    }
  }
}

void ReferenceBackend::add(Tensor x, Tensor y) {
  check_shape(y, x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) at(y, r, c) = float(double(at(y, r, c)) + at(x, r, c));
  }
}

void ReferenceBackend::gather_rows(Tensor x, const int32_t* index, Tensor y) {
  check_shape(y, y.rows, x.cols);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.cols; ++c) at(y, r, c) = at(x, index[r], c);
  }
}

void ReferenceBackend::scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) {
  check_shape(x, x.rows, dy.cols);
  for (int64_t r = 0; r < dy.rows; ++r) {
    for (int64_t c = 0; c < dy.cols; ++c) {
      at(x, index[r], c) = float(double(at(x, index[r], c)) + at(dy, r, c));
    }
  }
}

void ReferenceBackend::scatter_rows(Tensor x, const int32_t* index, Tensor y) {
  check_shape(y, y.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) at(y, index[r], c) = at(x, r, c);
  }
}

void ReferenceBackend::embed(const int32_t* ids, const uint32_t* positions, const int32_t* types,
                             Tensor word, Tensor position, Tensor type, Tensor y) {
  FINETUNE_CHECK(word.cols == y.cols && position.cols == y.cols);
  FINETUNE_CHECK(!type || type.cols == y.cols);
  for (int64_t t = 0; t < y.rows; ++t) {
    for (int64_t c = 0; c < y.cols; ++c) {
      at(y, t, c) = float(double(at(word, ids[t], c)) + at(position, positions[t], c) +
                          (type ? at(type, types[t], c) : 0.0f));
    }
  }
}

void ReferenceBackend::embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                                      const int32_t* types, const int32_t* /*order*/, Tensor dword,
                                      Tensor dposition, Tensor dtype) {
  auto add_column = [&](Tensor table, int64_t column, auto row_of) {
    std::vector<double> sums(static_cast<size_t>(table.rows), 0.0);
    for (int64_t t = 0; t < dy.rows; ++t) sums[size_t(row_of(t))] += at(dy, t, column);
    for (int64_t r = 0; r < table.rows; ++r) {
      at(table, r, column) = float(at(table, r, column) + sums[size_t(r)]);
    }
  };
  FINETUNE_CHECK(dword.cols == dy.cols && dposition.cols == dy.cols);
  FINETUNE_CHECK(!dtype || dtype.cols == dy.cols);
  for (int64_t c = 0; c < dy.cols; ++c) {
    add_column(dword, c, [&](int64_t t) { return ids[t]; });
    add_column(dposition, c, [&](int64_t t) { return positions[t]; });
    if (dtype) add_column(dtype, c, [&](int64_t t) { return types[t]; });
  }
}

}  // namespace finetune
