// Copies inside a device's memory.
#pragma once

#include <cstdint>
#include <memory>

#include "ops/backend.h"

namespace finetune {

class DeviceCopy {
 public:
  // `backend` must outlive this.
  explicit DeviceCopy(Backend& backend)
      : backend_(backend), first_(backend.allocate(sizeof(int32_t))) {}  // allocated memory is zero

  // Copies in the backend's order; the ranges must not overlap.
  void operator()(float* from, float* to, int64_t floats) const {
    if (floats == 0) return;
    backend_.scatter_rows(vector(from, floats), static_cast<const int32_t*>(first_.get()),
                          vector(to, floats));
  }

 private:
  Backend& backend_;
  std::shared_ptr<void> first_;
};

}  // namespace finetune
