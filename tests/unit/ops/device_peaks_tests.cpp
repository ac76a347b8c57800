// Measuring a device's peak rates. Blocks must exceed its caches, and most time must not be spent
// waiting.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "ops/device_peaks.h"
#include "ops/profiling_backend.h"

namespace finetune::test {
namespace {

// Moves blocks of up to kCached floats at once, larger ones at kBytesPerSecond or, on a machine
// that is busy, more slowly; multiplies at kFlopsPerSecond, after a launch's time.
class PacedDevice final : public ProfilingBackend {
 public:
  static constexpr int64_t kCached = int64_t{1} << 18;
  static constexpr double kBytesPerSecond = 1e9, kFlopsPerSecond = 1e9, kLaunch = 2e-3;

  PacedDevice() : ProfilingBackend(make_cpu_backend()) { set_recording(false); }
  void add(Tensor x, Tensor) override {
    largest = x.size();
    if (x.size() > kCached) sleep(3.0 * double(x.size()) * sizeof(float) / kBytesPerSecond);
  }
  void linear(Tensor x, Tensor w, Tensor, Tensor) override {
    sleep(kLaunch + 2.0 * double(x.rows) * double(w.rows) * double(x.cols) / kFlopsPerSecond);
  }

  int64_t largest = 0;  // floats of the last block

 private:
  static void sleep(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
};

TEST_CASE("the measured memory rate is not the cache's") {
  PacedDevice device;
  const double rate = measure_memory_peak(device);
  CHECK(device.largest > PacedDevice::kCached);
  CHECK(rate > 0);
  CHECK(rate <= PacedDevice::kBytesPerSecond);
}

TEST_CASE("a device's product rate is measured on a long enough product") {
  PacedDevice device;
  const double rate = measure_matmul_peak(device);
  CHECK(rate <= PacedDevice::kFlopsPerSecond);
  // The first product is a fifteenth of its launch, the last one, of 10 ms or more, four fifths.
  CHECK(rate > 0.5 * PacedDevice::kFlopsPerSecond);
}

}  // namespace
}  // namespace finetune::test
