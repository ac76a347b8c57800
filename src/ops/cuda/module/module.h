// The boundary between the program and finetune_cuda.so: one extern "C" entry with a version. The
// module is loaded only if a GPU is to be used. Only plain C types and no exceptions cross the
// boundary, and the module shares no state of core/ with the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cuda/module/api.h"

extern "C" {

// The version: raise it with every change of the structures below, in api.h and in ops/operands.h.
// A change of ops/operations.inc changes it automatically.
constexpr uint32_t kFinetuneCudaAbi = finetune::cuda::version_of_operations(17);

struct FinetuneHostServices {
  uint32_t abi;
  void (*log)(const char* line);  // thread-safe
};

// Functions return 0, or 1 with a message in the given buffer (always terminated).
struct FinetuneCudaModule {
  uint32_t abi;
  // Writes lines "name: value" with the libraries' versions and the devices. Returns 1 if no GPU
  // can be used; the text then still has the versions, and the reason in its last line.
  int (*describe)(char* text, size_t size);
  // Returns the number of usable GPUs, which functions->create numbers from 0; for 0 `message` says
  // why.
  int (*count_devices)(char* message, size_t size);
  // Runs a kernel and a matrix product on the first GPU, to check that this build works there.
  int (*self_test)(char* message, size_t size);
  const finetune::cuda::Functions* functions;  // the operations
};

// Null if `services` has another version.
const FinetuneCudaModule* finetune_cuda_module(const FinetuneHostServices* services);
}
