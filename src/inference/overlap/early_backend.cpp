// Makes the first GPU's backend beside other work.
#include "inference/overlap/early_backend.h"

#include <system_error>
#include <utility>

#include "core/error.h"
#include "engine/engine.h"
#include "ops/cuda/host/cuda_backend.h"

namespace finetune {

EarlyBackend::EarlyBackend(std::string device, std::string precision) {
  if (!may_be_on_gpu(device)) return;
  const DType compute = precision == "fp32" ? DType::f32 : DType::bf16;  // auto: bf16, on a GPU
  try {
    thread_ = std::thread([this, device = std::move(device), compute] {
      try {
        std::string problem;
        if (resolved_device(device) == "cuda") backend_ = make_cuda_backend(compute, &problem, 0);
      } catch (const std::exception&) {
      }
    });
  } catch (const std::system_error&) {  // no thread: take() returns null
  }
}

EarlyBackend::~EarlyBackend() {
  wait();
}

void EarlyBackend::wait() {
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Backend> EarlyBackend::take(std::string_view device, std::string_view precision) {
  wait();
  const DType compute = precision == "bf16" ? DType::bf16 : DType::f32;
  if (device != "cuda" || !backend_ || backend_->compute_type() != compute) return nullptr;
  return std::move(backend_);
}

}  // namespace finetune
