// Measures a device's matrix-product rate and memory bandwidth.
#include "ops/device_peaks.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "core/numeric/philox.h"

namespace finetune {
namespace {

constexpr double kLongEnough = 0.01;  // seconds; waiting for the device adds a thousandth
constexpr int64_t kLeastSide = 64, kMostSide = 16384;
constexpr int64_t kLeastBlock = int64_t{1} << 14, kMostBlock = int64_t{1} << 28;  // floats

// Seconds of the fastest of three calls after a warm-up.
double fastest(Backend& backend, const std::function<void()>& call) {
  double best = 1e300;
  for (int i = -1; i < 3; ++i) {
    backend.synchronize();
    const double start = seconds_now();
    call();
    backend.synchronize();
    if (i >= 0) best = std::min(best, seconds_now() - start);
  }
  return best;
}

// Random values: multiplying zeros needs less power and would let the device run faster.
std::shared_ptr<void> noise(Backend& backend, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); i += 4) {
    const auto bits = philox({1, 2}, {uint32_t(i), 0, 0, 0});
    for (size_t j = 0; j < 4; ++j) values[i + j] = float(unit_interval(bits[j]) - 0.5);
  }
  auto memory = backend.allocate(values.size() * sizeof(float));
  backend.upload(memory.get(), values.data(), values.size() * sizeof(float));
  return memory;
}

}  // namespace

double measure_matmul_peak(Backend& backend) {
  double best = 0, seconds = 0;
  for (int64_t side = kLeastSide; side <= kMostSide && seconds < kLongEnough; side *= 2) {
    const int64_t inner = side / 4;
    const auto operand = noise(backend, side * inner);
    const auto result = backend.allocate(size_t(side * side) * sizeof(float));
    const Tensor x = matrix(static_cast<float*>(operand.get()), side, inner);
    const Tensor y = matrix(static_cast<float*>(result.get()), side, side);
    seconds = fastest(backend, [&] { backend.linear(x, x, {}, y); });
    best = std::max(best, 2.0 * double(side) * double(side) * double(inner) / seconds);
  }
  return best;
}

// Uses only the largest block: smaller ones may be in a cache, which on some devices is several
// times faster than memory.
double measure_memory_peak(Backend& backend) {
  double rate = 0, seconds = 0;
  for (int64_t count = kLeastBlock; count <= kMostBlock && seconds < kLongEnough; count *= 4) {
    const size_t bytes = size_t(count) * sizeof(float);
    const auto x = backend.allocate(bytes), y = backend.allocate(bytes);
    seconds = fastest(backend, [&] {
      backend.add(vector(static_cast<float*>(x.get()), count),
                  vector(static_cast<float*>(y.get()), count));
    });
    rate = 3.0 * double(bytes) / seconds;
  }
  return rate;
}

}  // namespace finetune
