// Copies between device and host memory beside the device's other work.
#pragma once

#include <cstddef>

namespace finetune {

// Copies run in the order of the calls, each after the backend's current work. Calls return at
// once. Host memory must be from Backend::allocate_on_host(); do not change either memory before
// wait().
class HostCopies {
 public:
  virtual ~HostCopies() = default;
  // `number` (0, 1, ...) names the copy until the next copy of this number.
  virtual void store(int number, void* host, const void* from, size_t bytes) = 0;
  virtual void load(int number, void* to, const void* host, size_t bytes) = 0;
  // The backend's later work waits for the last copy of this number, if any.
  virtual void wait(int number) = 0;
};

}  // namespace finetune
