// Replaces src/ops/cuda/module/describe.cu, which needs libraries that are absent here.
#include "ops/cuda/module/describe.h"

#include <cuda_runtime.h>

#include <numeric>

namespace finetune::cuda {

bool describe(std::string& text) {
  text += "GPU: kernels on the host\n";
  return true;
}

std::vector<int> usable_devices(std::string& problem) {
  std::vector<int> devices(size_t(host_cuda::devices()));
  std::iota(devices.begin(), devices.end(), 0);
  if (devices.empty()) problem = "HOST_CUDA_DEVICES is 0";
  return devices;
}

bool self_test(std::string& message) {
  message = "ok";
  return true;
}

}  // namespace finetune::cuda
