// Activations of bf16 tensors on the GPU, for every x where the function is no constant.
// Cheap formulas must not show in what is rounded, nor in a tail that the op table's large values
// hide.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "core/numeric/dtype.h"
#include "op_case.h"
#include "shared.h"

namespace finetune::test {
namespace {

// 1/30 of the possible change by rounding to bf16.
constexpr double kTolerance = 0x1p-14;
// For values below fp32's normal numbers, or products of such.
constexpr double kTiny = 0x1p-119;
constexpr double kLargest = 128;

struct Exact {
  double value;
  double derivative;
  double size;  // of the terms that add up to the derivative
};

// x * gate(x), where slope is gate'(x)
Exact gated(double x, double gate, double slope) {
  return {x * gate, gate + x * slope, gate + std::abs(x * slope)};
}

Exact exact(Activation f, double x) {
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (f) {
    case Activation::gelu:
      return gated(x, 0.5 * std::erfc(-x / std::numbers::sqrt2),
                   std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi));
    case Activation::gelu_tanh: {
      const double scale = 2 * std::sqrt(2 / std::numbers::pi);
      const double v = scale * (x + 0.044715 * x * x * x);
      return gated(x, sigmoid(v), sigmoid(v) * sigmoid(-v) * scale * (1 + 3 * 0.044715 * x * x));
    }
    case Activation::relu:
      return {std::max(x, 0.0), x > 0 ? 1.0 : 0.0, 0};
    case Activation::silu:
      return gated(x, sigmoid(x), sigmoid(x) * sigmoid(-x));
    case Activation::tanh: {
      const double e = std::exp(-2 * std::abs(x)), slope = 4 * e / ((1 + e) * (1 + e));
      return {std::tanh(x), slope, slope};
    }
  }
  return {};
}

// All with 2^-20 <= |x| < kLargest, in eights, then zeros and one that is no number.
std::vector<bfloat16> arguments() {
  std::vector<bfloat16> all;
  for (float sign : {1.0f, -1.0f}) {
    bfloat16 x(0x1p-20f);
    for (; double(float(x)) < kLargest; ++x.bits) all.push_back(bfloat16(sign * float(x)));
  }
  all.resize(all.size() + 7);
  all.push_back(bfloat16(std::numeric_limits<float>::quiet_NaN()));
  return all;
}

// How far `got` is from `exact`, beyond the rounding to bf16 and relative to `size`.
double excess(double got, double exact, double size) {
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  const double half = exact == 0 ? 0 : std::ldexp(1.0, std::ilogb(exact) - 8);
  return std::max(0.0, std::abs(got - exact) - half - kTiny) / std::max(size, kTiny);
}

void check_activation(Backend& backend, Activation f) {
  const std::vector<bfloat16> x = arguments();
  const std::vector<bfloat16> ones(x.size(), bfloat16(1.0f));
  const size_t bytes = x.size() * sizeof(bfloat16);
  auto uploaded = [&](const std::vector<bfloat16>& values) {
    auto memory = backend.allocate(bytes);
    backend.upload(memory.get(), values.data(), bytes);
    return memory;
  };
  const auto from = uploaded(x), to = uploaded(x), gradient = uploaded(ones);
  auto row = [&](const std::shared_ptr<void>& memory) {
    const auto count = int64_t(x.size());
    return Tensor{memory.get(), DType::bf16, 1, count, count};
  };
  std::vector<bfloat16> y(x.size()), dx(x.size());
  backend.activation(f, row(from), row(to));
  backend.download(y.data(), to.get(), bytes);
  backend.activation_backward(f, row(from), row(gradient), row(to), row(from));
  backend.download(dx.data(), to.get(), bytes);
  std::vector<bfloat16> again(x.size());
  backend.download(again.data(), from.get(), bytes);
  CHECK(std::memcmp(again.data(), y.data(), bytes) == 0);

  double worst = 0, worst_derivative = 0, at = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const Exact e = exact(f, float(x[i]));
    const double here = excess(float(y[i]), e.value, std::abs(e.value));
    if (here > worst) at = float(x[i]);
    worst = std::max(worst, here);
    worst_derivative = std::max(worst_derivative, excess(float(dx[i]), e.derivative, e.size));
  }
  INFO("activation ", int(f), ": value ", worst, " at ", at, ", derivative ", worst_derivative);
  CHECK(worst <= kTolerance);
  CHECK(worst_derivative <= kTolerance);
  CHECK(std::isnan(float(y.back())));
}

}  // namespace

TEST_CASE("the GPU's activations of bf16 are exact but for their rounding") {
  int present = 0;
  for (const BackendFactory& factory : backends_under_test()) {
    if (factory.device != Device::gpu) continue;
    const auto backend = factory.make();
    if (!backend || backend->activation_type() != DType::bf16) continue;
    ++present;
    for (Activation f : {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                         Activation::silu, Activation::tanh}) {
      check_activation(*backend, f);
    }
  }
  if (present == 0) skip("no CUDA device");
}

}  // namespace finetune::test
