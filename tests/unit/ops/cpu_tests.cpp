// Cases of the CPU backend beyond the op table: values at the limits of float.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/threads/parallel.h"
#include "ops/backend.h"
#include "ops/cpu/gemm/gemm.h"

namespace finetune::test {
namespace {

constexpr Activation kActivations[] = {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                                       Activation::silu, Activation::tanh};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A matrix in its own memory, with `gap` floats between rows.
struct Operand {
  int64_t rows, cols, stride;
  std::vector<float> values;

  Operand(int64_t rows_, int64_t cols_, int64_t gap)
      : rows(rows_), cols(cols_), stride(cols_ + gap), values(size_t(rows * stride)) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i));
  }
  Tensor view() { return {values.data(), DType::f32, rows, cols, stride}; }
  float at(int64_t r, int64_t c, bool transposed) const {
    return values[size_t(transposed ? c * stride + r : r * stride + c)];
  }
};

struct ProductCase {
  int64_t rows, cols, depth, gap;
  bool transpose_a, transpose_b, accumulate;
  bool bias() const { return !accumulate && !transpose_a; }
};

// The operands of c, and c with the gaps between its rows.
struct Operands {
  Operand a, b, c, bias;
  explicit Operands(const ProductCase& s)
      : a(s.transpose_a ? Operand(s.depth, s.rows, s.gap) : Operand(s.rows, s.depth, s.gap)),
        b(s.transpose_b ? Operand(s.cols, s.depth, s.gap) : Operand(s.depth, s.cols, s.gap)),
        c(s.rows, s.cols, s.gap),
        bias(1, s.cols, s.gap) {}
};

// The promises of gemm.h about c after fp32_gemm(), bit by bit.
std::vector<float> chains(const ProductCase& s) {
  const Operands of(s);
  std::vector<float> expected = of.c.values;
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t i = 0; i < s.cols; ++i) {
      float& sum = expected[size_t(r * of.c.stride + i)];
      if (!s.accumulate) sum = 0;
      for (int64_t k = 0; k < s.depth; ++k) {
        sum = std::fma(of.a.at(r, k, s.transpose_a), of.b.at(k, i, s.transpose_b), sum);
      }
      if (s.bias()) sum += of.bias.at(0, i, false);
    }
  }
  return expected;
}

std::vector<float> product(const ProductCase& s) {
  Operands of(s);
  cpu::Product p;
  p.a = of.a.view();
  p.transpose_a = s.transpose_a;
  p.b = of.b.view();
  p.transpose_b = s.transpose_b;
  p.c = of.c.view();
  p.accumulate = s.accumulate;
  if (s.bias()) p.bias = vector(of.bias.values.data(), s.cols);
  cpu::fp32_gemm(p);
  return of.c.values;
}

}  // namespace

TEST_CASE("activations of very large and very small values") {
  auto cpu = make_cpu_backend();
  auto reference = make_reference_backend();
  std::vector<float> x;
  for (float size :
       {0.0f, 1e-30f, 1e-6f, 0.6249f, 0.6251f, 5.0f, 9.0f, 20.0f, 88.5f, 200.0f, 1e4f}) {
    x.push_back(size);
    x.push_back(-size);
  }
  const int64_t n = int64_t(x.size());
  std::vector<float> got(x.size()), expected(x.size()), ones(x.size(), 1.0f);
  for (Activation f : kActivations) {
    for (bool backward : {false, true}) {
      for (auto [backend, y] : {std::pair{cpu.get(), &got}, {reference.get(), &expected}}) {
        if (backward) {
          backend->activation_backward(f, vector(x.data(), n), vector(ones.data(), n),
                                       vector(y->data(), n), {});
        } else {
          backend->activation(f, vector(x.data(), n), vector(y->data(), n));
        }
      }
      for (size_t i = 0; i < x.size(); ++i) {
        INFO("activation ", int(f), backward ? " backward of " : " of ", x[i]);
        // The exponent of a tail rounds. The reference's 1 - tanh^2 ends at double's precision.
        const float allowed = 2e-16f + 5e-6f * std::abs(expected[i]);
        CHECK(std::abs(got[i] - expected[i]) <= allowed);
      }
    }
  }
}

TEST_CASE("fp32 products of any shape are chains of multiply-adds, with any number of threads") {
  struct Shape {
    int64_t rows, cols, depth, gap;
  };
  const int before = threads();
  for (const Shape s : {Shape{1, 1, 1, 0},
                        {7, 33, 400, 3},
                        {13, 17, 5, 1},
                        {8, 48, 384, 0},
                        {131, 117, 800, 1},
                        {800, 900, 40, 0},
                        {900, 800, 37, 2},
                        {64, 5, 1030, 0},
                        {100, 1, 64, 7}}) {
    for (const auto& transposed : {std::pair{false, false}, {false, true}, {true, false}}) {
      const bool a = transposed.first, b = transposed.second;
      for (const bool accumulate : {false, true}) {
        const ProductCase c = {s.rows, s.cols, s.depth, s.gap, a, b, accumulate};
        const std::vector<float> expected = chains(c);
        for (const int count : {1, 24}) {
          INFO(s.rows, " ", s.cols, " ", s.depth, a ? " a^T" : "", b ? " b^T" : "",
               accumulate ? " accumulate " : " ", count, " threads");
          set_threads(count);
          CHECK(product(c) == expected);
        }
      }
    }
  }
  set_threads(before);
}

TEST_CASE("bf16 products round their operands to the nearest, ties to even") {
  auto backend = make_cpu_backend(DType::bf16);
  constexpr int64_t kRows = 50, kIn = 70, kOut = 40;
  std::vector<float> x(kRows * kIn), w(kOut * kIn);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f + float(i % 512) / 256.0f / 4.0f;  // many ties
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::sin(float(i));
  const auto product = [&] {
    std::vector<float> y(kRows * kOut);
    backend->linear(matrix(x.data(), kRows, kIn), matrix(w.data(), kOut, kIn), {},
                    matrix(y.data(), kRows, kOut));
    return y;
  };
  const std::vector<float> before = product();
  for (std::vector<float>* operand : {&x, &w}) {
    for (float& value : *operand) value = float(bfloat16(value));
  }
  CHECK(product() == before);
  x[0] = kNaN;
  CHECK(std::isnan(product()[0]));
}

TEST_CASE("heads that are computed apart have the results of all computed together") {
  constexpr int64_t kHeads = 4, kSize = 16, kWide = kHeads * kSize, kRows = 23;
  const std::vector<int32_t> offsets{0, 9, kRows};
  const std::vector<uint32_t> samples{5, 2};
  const Segments segments{2, kRows - 9, offsets.data()};
  const Dropout dropout = Dropout::make(0.2, derive_key(3, 20), 9);
  std::vector<float> qkv(kRows * 3 * kWide);
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = float(std::sin(0.7 * double(i)));
  const Tensor all = matrix(qkv.data(), kRows, 3 * kWide);
  auto cpu = make_cpu_backend();
  const auto attend = [&](int64_t first, int64_t heads, Tensor out, Tensor lse) {
    AttentionShape shape{heads, kSize, 0.25f, segments, segments, samples.data(), first};
    const int64_t at = first * kSize, cols = heads * kSize;
    cpu->attention(shape, dropout, all.columns(at, cols), all.columns(kWide + at, cols),
                   all.columns(2 * kWide + at, cols), out, lse);
  };
  std::vector<float> whole(kRows * kWide), apart(kRows * kWide), sums(kRows * kHeads);
  attend(0, kHeads, matrix(whole.data(), kRows, kWide), matrix(sums.data(), kHeads, kRows));
  const Tensor out = matrix(apart.data(), kRows, kWide);
  for (int64_t first : {0, 2}) {
    attend(first, 2, out.columns(first * kSize, 2 * kSize), matrix(sums.data(), 2, kRows));
  }
  CHECK(whole == apart);
}

TEST_CASE("a NaN anywhere in a row reaches the results") {
  auto cpu = make_cpu_backend();
  constexpr int64_t kSize = 21;  // not a multiple of a vector
  std::vector<float> out(kSize), gamma(kSize, 1.0f), beta(kSize, 0.0f);
  for (int64_t at = 0; at < kSize; ++at) {
    INFO("NaN at ", at);
    std::vector<float> x(kSize, 0.5f);
    x[size_t(at)] = kNaN;
    for (Activation f : kActivations) {
      cpu->activation(f, vector(x.data(), kSize), vector(out.data(), kSize));
      CHECK(std::isnan(out[size_t(at)]));
    }
    cpu->add_layer_norm(vector(x.data(), kSize), {}, {}, {}, vector(gamma.data(), kSize),
                        vector(beta.data(), kSize), 1e-12f, {}, {}, vector(out.data(), kSize));
    CHECK(std::isnan(out[0]));

    // One key of kSize is NaN: every query sees it.
    const std::vector<int32_t> offsets{0, int32_t(kSize)};
    const Segments segments{1, kSize, offsets.data()};
    const AttentionShape shape{1, 1, 1.0f, segments, segments, nullptr};
    std::vector<float> q(kSize, 0.25f);
    cpu->attention(shape, {}, matrix(q.data(), kSize, 1), matrix(x.data(), kSize, 1),
                   matrix(q.data(), kSize, 1), matrix(out.data(), kSize, 1), {});
    for (float value : out) CHECK(std::isnan(value));
  }
}

}  // namespace finetune::test
