// A GPU's backend, made on a thread of its own while the command reads its files.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "ops/backend.h"

namespace finetune {

// Making a CUDA context takes tenths of a second. Errors are ignored: take() then returns null, and
// the caller makes a backend itself and gets the error.
class EarlyBackend {
 public:
  // Takes --device and --precision as given. Does nothing if no GPU can be used.
  EarlyBackend(std::string device, std::string precision);
  ~EarlyBackend();
  EarlyBackend(const EarlyBackend&) = delete;
  EarlyBackend& operator=(const EarlyBackend&) = delete;

  // Waits. Returns null unless the backend computes on `device` in `precision`, both resolved.
  std::unique_ptr<Backend> take(std::string_view device, std::string_view precision);
  void wait();

 private:
  std::unique_ptr<Backend> backend_;
  std::thread thread_;
};

}  // namespace finetune
