// CUDA graphs use unforecast memory, and are dropped when the device needs it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

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

}  // namespace finetune::test
