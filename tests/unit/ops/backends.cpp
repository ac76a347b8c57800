#include "op_case.h"
#include "ops/cuda_backend.h"

namespace finetune::test {

const std::vector<BackendFactory>& backends_under_test() {
  static const std::vector<BackendFactory> backends = {
      {"CPU", Device::cpu, [] { return make_cpu_backend(); }},
      {"CPU, bf16", Device::cpu, [] { return make_cpu_backend(DType::bf16); }},
      {"CUDA", Device::gpu, [] { return make_cuda_backend(DType::f32); }},
      {"CUDA, bf16", Device::gpu, [] { return make_cuda_backend(DType::bf16); }},
  };
  return backends;
}

}  // namespace finetune::test
