// Asks CUDA for this machine's GPUs.
#include <cuda_runtime.h>

#include "ops/cuda/module/devices.h"

namespace finetune::cuda {
namespace {

int count_devices(std::string& problem) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return devices;
  cudaGetLastError();
  problem = error == cudaSuccess ? "no CUDA-capable device is detected" : cudaGetErrorString(error);
  return 0;
}

// Why the kernels have no code for this GPU, or "". FINETUNE_OLDEST_GPU is the least compute
// capability of meson's option gpu_architectures.
std::string fault_of(int device) {
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) {
    cudaGetLastError();
    return "it does not say what it is";
  }
  const int own = 10 * major + minor;
  if (own >= FINETUNE_OLDEST_GPU) return "";
  const std::string oldest = std::to_string(FINETUNE_OLDEST_GPU);
  return "it is sm_" + std::to_string(own) + ", this build has code for sm_" + oldest +
         " and later" + (own < 80 ? " (A100, A10, L4, RTX 30 and newer)" : "");
}

std::string describe_device(int device) {
  const std::string name = "GPU " + std::to_string(device) + ": ";
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, device) != cudaSuccess) {
    cudaGetLastError();
    return name + "it does not say what it is\n";
  }
  const std::string fault = fault_of(device);
  return name + p.name + ", sm_" + std::to_string(p.major) + std::to_string(p.minor) + ", " +
         std::to_string(p.multiProcessorCount) + " multiprocessors, " +
         std::to_string(p.totalGlobalMem >> 20) + " MiB" +
         (fault.empty() ? "" : "; not usable: " + fault) + "\n";
}

}  // namespace

std::vector<int> usable_devices(std::string& problem) {
  std::vector<int> usable;
  const int devices = count_devices(problem);
  for (int device = 0; device < devices; ++device) {
    const std::string fault = fault_of(device);
    if (fault.empty())
      usable.push_back(device);
    else
      problem = "GPU " + std::to_string(device) + ": " + fault;
  }
  return usable;
}

std::string describe_devices() {
  std::string problem, text;
  const int devices = count_devices(problem);
  if (devices == 0) return "GPU: none (" + problem + ")\n";
  for (int device = 0; device < devices; ++device) text += describe_device(device);
  return text;
}

}  // namespace finetune::cuda
