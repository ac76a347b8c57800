// Launches of kernels: all may start early, or none; each waits first.
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <string>

#include "op_case.h"

namespace finetune::test {
namespace {

// The share of kernels that may start early, in percent.
uint64_t early_launches(const BackendFactory& factory, const char* launches) {
  ::setenv("FINETUNE_CUDA_LAUNCHES", launches, 1);
  const auto backend = factory.make();
  ::unsetenv("FINETUNE_CUDA_LAUNCHES");
  const auto memory = backend->allocate(64 * sizeof(float));
  const Tensor x = vector(static_cast<float*>(memory.get()), 64);
  const uint64_t launched = host_cuda::launched, early = host_cuda::started_early;
  backend->fill_zero(x);
  backend->add(x, x);
  backend->activation(Activation::gelu, x, x);
  return 100 * (host_cuda::started_early - early) / (host_cuda::launched - launched);
}

}  // namespace

TEST_CASE("kernels of the GPU start early where that is asked for, on chips that can") {
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(factory.name);
    CHECK(early_launches(factory, "plain") == 0);
    CHECK(early_launches(factory, "programmatic") == 100);
    ::setenv("HOST_CUDA_CAPABILITIES", "80", 1);
    CHECK(early_launches(factory, "programmatic") == 0);
    ::unsetenv("HOST_CUDA_CAPABILITIES");
  }
}

TEST_CASE("each kernel of the GPU waits for the kernels before it, first") {
  // From __global__ to the first statement, which is behind the only brace.
  const std::regex kernel(R"(__global__[^{;]*\{\s*([^;]*;))");
  int kernels = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FINETUNE_SOURCES)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cu" && extension != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found) {
      INFO(entry.path().string(), ": ", found->str());
      CHECK((*found)[1] == "wait_for_earlier_kernels();");
      ++kernels;
    }
  }
  CHECK(kernels > 50);
}

}  // namespace finetune::test
