// The entry of finetune_cuda.so.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nccl.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ops/cuda/elementwise.h"
#include "ops/cuda/module.h"

namespace {

void put(char* buffer, size_t size, const std::string& text) {
  if (size == 0) return;
  size_t count = text.size() < size - 1 ? text.size() : size - 1;
  std::memcpy(buffer, text.data(), count);
  buffer[count] = '\0';
}

std::string dotted(int version, int major_unit, int minor_unit) {
  return std::to_string(version / major_unit) + "." +
         std::to_string(version % major_unit / minor_unit) + "." +
         std::to_string(version % minor_unit);
}

int describe(char* text, size_t size) {
  std::string out;
  int runtime = 0, driver = 0, nccl = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  ncclGetVersion(&nccl);
  out += "CUDA runtime: " + std::to_string(runtime / 1000) + "." +
         std::to_string(runtime % 1000 / 10) + "\n";
  out += "CUDA driver: " +
         (driver ? std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10)
                 : std::string("none")) +
         "\n";
  out += "cuBLASLt: " + dotted(int(cublasLtGetVersion()), 10000, 100) + "\n";
  out += "cuDNN: " + dotted(int(cudnnGetVersion()), 10000, 100) + "\n";
  out += "NCCL: " + dotted(nccl, 10000, 100) + "\n";
  int devices = 0;
  cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) {
    put(text, size, out + "GPU: none (" + cudaGetErrorString(error) + ")\n");
    return 1;
  }
  for (int device = 0; device < devices; ++device) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    out += "GPU " + std::to_string(device) + ": " + properties.name + ", sm_" +
           std::to_string(properties.major) + std::to_string(properties.minor) + ", " +
           std::to_string(properties.totalGlobalMem >> 20) + " MiB\n";
  }
  put(text, size, out);
  return devices == 0;
}

int self_test(char* message, size_t size) {
  constexpr int kCount = 1000;
  std::vector<float> x(kCount), y(kCount, 1.0f), result(kCount);
  for (int i = 0; i < kCount; ++i) x[size_t(i)] = float(i);
  float* device = nullptr;
  cudaError_t error = cudaMalloc(&device, 2 * kCount * sizeof(float));
  if (error == cudaSuccess) {
    cudaMemcpy(device, x.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(device + kCount, y.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
    finetune::cuda::add(device, device + kCount, kCount, nullptr);
    error =
        cudaMemcpy(result.data(), device + kCount, kCount * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(device);
  }
  if (error != cudaSuccess) {
    put(message, size, cudaGetErrorString(error));
    return 1;
  }
  for (int i = 0; i < kCount; ++i) {
    if (result[size_t(i)] != x[size_t(i)] + 1.0f) {
      put(message, size, "the GPU's sum differs from the host's");
      return 1;
    }
  }
  put(message, size, "ok");
  return 0;
}

constexpr FinetuneCudaModule kModule = {FINETUNE_CUDA_ABI, describe, self_test};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FinetuneCudaModule* finetune_cuda_module(
    const FinetuneHostServices* services) {
  return services && services->abi == FINETUNE_CUDA_ABI ? &kModule : nullptr;
}
