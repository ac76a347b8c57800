#include "op_case.h"
#include "ops/cuda_backend.h"
#include "ops/cuda_module.h"

namespace finetune::test {
namespace {

std::unique_ptr<Backend> cuda_backend(DType compute) {
  return gpu_may_be_present() ? make_cuda_backend(compute) : nullptr;
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
