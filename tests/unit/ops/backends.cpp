// The backends that the op table tests: CPU and, if present, CUDA, in fp32 and bf16.
#include <cstdlib>
#include <stdexcept>

#include "op_case.h"
#include "ops/cuda/host/cuda_backend.h"
#include "ops/cuda/host/cuda_module.h"

namespace finetune::test {
namespace {

// With FINETUNE_DEVICE=cuda in the environment (scripts/gpu/gpu_check.sh), an unusable GPU is a
// failure.
std::unique_ptr<Backend> cuda_backend(DType compute) {
  if (!gpu_may_be_present()) return nullptr;
  std::string problem;
  auto backend = make_cuda_backend(compute, &problem);
  const char* device = std::getenv("FINETUNE_DEVICE");
  if (!backend && device && std::string(device) == "cuda") {
    throw std::runtime_error("the GPU cannot be used: " + problem);
  }
  return backend;
}

}  // namespace

const std::vector<BackendFactory>& backends_under_test() {
  static const std::vector<BackendFactory> backends = {
      {"CPU", Device::cpu, [] { return make_cpu_backend(); }},
      {"CPU, bf16", Device::cpu, [] { return make_cpu_backend(DType::bf16); }},
      {"CUDA", Device::gpu, [] { return cuda_backend(DType::f32); }},
      {"CUDA, bf16", Device::gpu, [] { return cuda_backend(DType::bf16); }},
  };
  return backends;
}

}  // namespace finetune::test
