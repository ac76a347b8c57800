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

void ReferenceBackend::gated_activation(Activation f, Tensor x, Dropout dropout, RowNames names,
                                        int64_t first_column, Tensor y) {
  dropout = dropout.taken();
  const int64_t n = y.cols;
  check_shape(x, y.rows, 2 * n);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      const double kept = reference::mask(dropout, names, r, first_column + c);
      at(y, r, c) = float(value(f, at(x, r, c)) * double(at(x, r, n + c)) * kept);
    }
  }
}

void ReferenceBackend::gated_activation_backward(Activation f, Tensor x, Tensor dy, Dropout dropout,
                                                 RowNames names, int64_t first_column, Tensor dx,
                                                 Tensor y) {
  dropout = dropout.taken();
  const int64_t n = dy.cols;
  check_shape(x, dy.rows, 2 * n);
  check_shape(dx, dy.rows, 2 * n);
  check_shape(y, dy.rows, n);
  for (int64_t r = 0; r < dy.rows; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      const double kept = reference::mask(dropout, names, r, first_column + c);
      const double u = at(x, r, c), g = at(x, r, n + c), d = kept * at(dy, r, c);
      at(dx, r, c) = float(d * g * derivative(f, u));
      at(dx, r, n + c) = float(d * value(f, u));
      at(y, r, c) = float(value(f, u) * g * kept);
    }
  }
}

void ReferenceBackend::rotate(Tensor x, const uint32_t* positions, Tensor table, bool back,
                              Tensor y) {
  const int64_t half = table.cols / 2;
  check_shape(y, x.rows, x.cols);
  FINETUNE_CHECK(table.cols == 2 * half && x.cols % table.cols == 0);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t i = 0; i < x.cols / 2; ++i) {
      const int64_t c = i % half, first = i / half * table.cols + c, second = first + half;
      const double cosine = at(table, positions[r], c);
      const double sine = (back ? -1.0 : 1.0) * double(at(table, positions[r], half + c));
      const double a = at(x, r, first), b = at(x, r, second);
      at(y, r, first) = float(a * cosine - b * sine);
      at(y, r, second) = float(b * cosine + a * sine);
    }
  }
}

void ReferenceBackend::segment_mean(Tensor x, Segments segments, Tensor y) {
  check_shape(y, segments.count, x.cols);
  for (int64_t b = 0; b < y.rows; ++b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    for (int64_t c = 0; c < y.cols; ++c) {
      double sum = 0;
      for (int64_t r = begin; r < end; ++r) sum += at(x, r, c);
      at(y, b, c) = float(sum / double(end - begin));
    }
  }
}

void ReferenceBackend::gather_taps(Tensor x, Segments segments, int64_t taps, Tensor y) {
  check_shape(y, x.rows, x.cols * taps);
  for (int64_t b = 0; b < segments.count; ++b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t i = 0; i < y.cols; ++i) {
        const int64_t row = t + i % taps - taps / 2;
        at(y, t, i) = row >= begin && row < end ? at(x, row, i / taps) : 0.0f;
      }
    }
  }
}

void ReferenceBackend::gather_taps_backward(Tensor dy, Segments segments, int64_t taps, Tensor dx) {
  check_shape(dy, dx.rows, dx.cols * taps);
  for (int64_t b = 0; b < segments.count; ++b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < dx.cols; ++c) {
        double sum = 0;
        for (int64_t m = 0; m < taps; ++m) {
          const int64_t row = r - m + taps / 2;
          if (row >= begin && row < end) sum += at(dy, row, c * taps + m);
        }
        at(dx, r, c) = float(sum);
      }
    }
  }
}

void ReferenceBackend::segment_mean_backward(Tensor dy, Segments segments, Tensor dx) {
  check_shape(dx, dx.rows, dy.cols);
  for (int64_t b = 0; b < dy.rows; ++b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < dy.cols; ++c)
        at(dx, r, c) = float(at(dy, b, c) / double(end - begin));
    }
  }
}

void ReferenceBackend::activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y,
                                           Tensor sums, bool accumulate) {
  check_shape(dy, x.rows, x.cols);
  check_shape(dx, x.rows, x.cols);
  std::vector<double> sum(size_t(x.cols), 0.0);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) {
      const double value = at(dy, r, c) * derivative(f, at(x, r, c));
      at(dx, r, c) = float(value);
      sum[size_t(c)] += value;
    }
  }
  for (int64_t c = 0; sums && c < x.cols; ++c) {
    at(sums, 0, c) = float((accumulate ? at(sums, 0, c) : 0.0) + sum[size_t(c)]);
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
  FINETUNE_CHECK(word.cols == y.cols && (!position || position.cols == y.cols));
  FINETUNE_CHECK(!type || type.cols == y.cols);
  for (int64_t t = 0; t < y.rows; ++t) {
    for (int64_t c = 0; c < y.cols; ++c) {
      at(y, t, c) =
          float(double(at(word, ids[t], c)) + (position ? at(position, positions[t], c) : 0.0f) +
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
  FINETUNE_CHECK(dword.cols == dy.cols && (!dposition || dposition.cols == dy.cols));
  FINETUNE_CHECK(!dtype || dtype.cols == dy.cols);
  for (int64_t c = 0; c < dy.cols; ++c) {
    add_column(dword, c, [&](int64_t t) { return ids[t]; });
    if (dposition) add_column(dposition, c, [&](int64_t t) { return positions[t]; });
    if (dtype) add_column(dtype, c, [&](int64_t t) { return types[t]; });
  }
}

}  // namespace finetune
