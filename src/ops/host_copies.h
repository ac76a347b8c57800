// Copies between a device's memory and the host's beside the device's other work.
#pragma once

#include <cstddef>

namespace finetune {

// Copies are done one after the other, in the order in which they are asked for, each as soon as
// the backend's work so far is done. Calls return at once. Host memory is that of
// Backend::allocate_on_host(); both memories stay as they are until wait().
class HostCopies {
 public:
  virtual ~HostCopies() = default;
  // `number`: 0, 1, ...; names the copy until the next one of this number.
  virtual void store(int number, void* host, const void* from, size_t bytes) = 0;
  virtual void load(int number, void* to, const void* host, size_t bytes) = 0;
  // The backend's work from here on comes after the copy of this number, if there is any.
  virtual void wait(int number) = 0;
};

}  // namespace finetune
