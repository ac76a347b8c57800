// Describes devices and library versions for doctor, and tests one product.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <fstream>
#include <vector>

#include "ops/cuda/module/describe.h"
#include "ops/cuda/module/devices.h"
#include "ops/cuda/module/functions.h"
#include "ops/cuda/module/optional_library.h"

namespace finetune::cuda {
namespace {

std::string dotted(size_t version, size_t major_unit, size_t minor_unit) {
  return std::to_string(version / major_unit) + "." +
         std::to_string(version % major_unit / minor_unit) + "." +
         std::to_string(version % minor_unit);
}

std::string short_version(int version) {  // 13000 gives "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// cuDNN is optional: attention has its own kernels (fused.h).
std::string cudnn_version() {
  const OptionalLibrary cudnn("libcudnn.so.9", "attention is our own without it");
  auto* version = cudnn.function<size_t()>("cudnnGetVersion");
  return version ? dotted(version(), 10000, 100) : "none: " + cudnn.problem();
}

std::string nccl_version() {
  int version = 0;
  const ncclResult_t result = ncclGetVersion(&version);
  return result == ncclSuccess ? dotted(size_t(version), 10000, 100)
                               : std::string("none: ") + ncclGetErrorString(result);
}

// "580.65.06" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release ..."
std::string kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos) {
      return word;
    }
  }
  return "none";
}

}  // namespace

bool describe(std::string& text) {
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  text = "CUDA runtime: " + short_version(runtime) + "\n";
  text += "CUDA driver: " + (driver ? short_version(driver) : std::string("none")) + "\n";
  text += "NVIDIA driver: " + kernel_driver() + "\n";
  text += "cuBLASLt: " + dotted(cublasLtGetVersion(), 10000, 100) + "\n";
  text += "cuDNN: " + cudnn_version() + "\n";
  text += "NCCL: " + nccl_version() + "\n";
  text += describe_devices();
  std::string problem;
  return !usable_devices(problem).empty();
}

// y (2, 3) = x (2, 2) * w (3, 2)^T + bias in both precisions, and y += y.
bool self_test(std::string& message) {
  constexpr float kOperands[] = {1, 2, 3, 4, /* w */ 1, 0, 0, 1, 1, 1, /* bias */ 0, 0, 8};
  const std::vector<float> expected = {2, 4, 22, 6, 8, 30};
  const Functions& f = functions();
  for (bool bf16 : {false, true}) {
    Context* context = nullptr;
    char text[512];
    if (f.create(
            0, bf16, [](const char*) {}, &context, text, sizeof text) != kDone) {
      message = text;
      return false;
    }
    void* memory = nullptr;
    std::vector<float> result(6);
    // Each operand begins at a multiple of 64 bytes.
    bool done = f.allocate(context, 4 * 64, &memory) == kDone;
    auto part = [&](int i) { return static_cast<float*>(memory) + 16 * i; };
    const Matrix y = {part(0), 2, 3, 3};
    const AnyMatrix x = {part(1), 2, 2, 2, false}, to = {y.data, 2, 3, 3, false},
                    w = {part(2), 3, 2, 2, false};
    const Matrix bias = {part(3), 1, 3, 3};
    done = done && f.upload(context, x.data, kOperands, 4 * sizeof(float)) == kDone &&
           f.upload(context, w.data, kOperands + 4, 6 * sizeof(float)) == kDone &&
           f.upload(context, bias.data, kOperands + 10, 3 * sizeof(float)) == kDone &&
           f.linear(context, x, w, bias, to) == kDone && f.add(context, y, y) == kDone &&
           f.download(context, result.data(), y.data, 6 * sizeof(float)) == kDone;
    message = done ? "ok" : f.error(context);
    if (memory) f.release(context, memory);
    f.destroy(context);
    if (done && result != expected) {
      message = "the GPU's results differ from the host's";
      done = false;
    }
    if (!done) return false;
  }
  return true;
}

}  // namespace finetune::cuda
