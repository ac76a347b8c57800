// CUDA graphs are dropped when the device needs their memory, or when memory that they use moves.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "op_case.h"

namespace finetune::test {
namespace {

constexpr int64_t kMiB = 1 << 20;

// The host's CUDA runtime reads it in each call.
class Variable {
 public:
  Variable(const char* name, int64_t value) : name_(name) { set(value); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  void set(int64_t value) { setenv(name_, std::to_string(value).c_str(), 1); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("CUDA graphs are dropped when memory runs out") {
  const Variable graphs("HOST_CUDA_GRAPH_MB", 64);
  Variable memory("HOST_CUDA_MEMORY_MB", 1024);
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(factory.name);
    const auto backend = factory.make();
    REQUIRE(backend->replays());
    const auto block = backend->allocate(4096);
    const int64_t free = backend->device_memory().free;
    int called = 0;
    const auto twice = [&] {
      for (int i = 0; i < 2; ++i) {
        const int64_t key[] = {7};
        backend->replay(key, [&] {
          ++called;
          backend->fill_zero(vector(static_cast<float*>(block.get()), 1024));
        });
      }
    };
    twice();
    CHECK(backend->device_memory().free == free - 64 * kMiB);
    twice();
    CHECK(called == 2);
    const DeviceMemory now = backend->device_memory();
    memory.set((now.total - now.free) / kMiB + 33);
    auto more = backend->allocate(48 * kMiB);
    CHECK(backend->device_memory().free >= 48 * kMiB);
    CHECK_THROWS_AS(backend->allocate(200 * kMiB), OutOfDeviceMemory);
    more.reset();
    twice();
    twice();
    CHECK(called == 4);
    memory.set(1024);
  }
}

TEST_CASE("when scratch memory grows, only the CUDA graphs that use it are dropped") {
  constexpr int64_t kRows = 64, kMoreRows = 4096, kCols = 8;
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(factory.name);
    const auto backend = factory.make();
    const auto memory = backend->allocate(size_t(2 * kMoreRows * kCols) * sizeof(float));
    const auto results = backend->allocate(size_t((kCols + 2) * kCols) * sizeof(float));
    auto* floats = static_cast<float*>(memory.get());
    auto* sums = static_cast<float*>(results.get());  // of dy, then of the weights, then others
    const auto gradients = [&](int64_t rows) {
      backend->linear_backward_weight(
          matrix(floats, rows, kCols), matrix(floats + kMoreRows * kCols, rows, kCols),
          matrix(sums + kCols, kCols, kCols), vector(sums, kCols), false);
    };
    int with_scratch = 0, without = 0;
    const auto passes = [&](float value) {
      const std::vector<float> dy(size_t(kRows * kCols), value);
      backend->upload(floats, dy.data(), dy.size() * sizeof(float));
      const int64_t keys[] = {1, 2};
      backend->replay(std::span(keys, 1), [&] {
        ++with_scratch;
        gradients(kRows);
      });
      backend->replay(keys, [&] {
        ++without;
        backend->fill_zero(vector(sums + (kCols + 1) * kCols, kCols));
      });
      float sum = 0;
      backend->download(&sum, sums, sizeof sum);
      CHECK(sum == float(kRows) * value);
    };
    for (float value : {1, 2, 3}) passes(value);
    CHECK(with_scratch == 2);
    CHECK(without == 2);
    gradients(kMoreRows);
    for (float value : {4, 5}) passes(value);
    CHECK(with_scratch == 3);  // recorded once more
    CHECK(without == 2);
  }
}

}  // namespace finetune::test
