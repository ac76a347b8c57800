// The CUDA backend over kernels that run on the host.
#include "op_case.h"
#include "ops/cuda/host/cuda_backend.h"
#include "ops/cuda/module/functions.h"

namespace finetune::test {
namespace {

std::unique_ptr<Backend> on_host(DType compute) {
  return std::make_unique<CudaBackend>(cuda::functions(), compute, 0);
}

}  // namespace

const std::vector<BackendFactory>& backends_under_test() {
  static const std::vector<BackendFactory> backends = {
      {"CUDA on the host", Device::gpu, [] { return on_host(DType::f32); }},
      {"CUDA on the host, bf16", Device::gpu, [] { return on_host(DType::bf16); }},
  };
  return backends;
}

}  // namespace finetune::test
