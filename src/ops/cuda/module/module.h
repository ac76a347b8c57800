// The boundary between the program and finetune_cuda.so: one extern "C" entry with a version.
// The module is loaded only where a GPU is to be used. Plain C types cross the boundary; no
// exception does, and the module shares no state of core/ with the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cuda/module/api.h"

extern "C" {

// The version: raised with every change of the structures below, in api.h and in ops/operands.h.
// A change of ops/operations.inc gives another one by itself.
constexpr uint32_t kFinetuneCudaAbi = finetune::cuda::version_of_operations(13);

struct FinetuneHostServices {
  uint32_t abi;
  void (*log)(const char* line);  // thread-safe
};

// Functions return 0, or 1 with a message in the given buffer (always terminated).
struct FinetuneCudaModule {
  uint32_t abi;
  // Lines "name: value" of the libraries' versions and the devices; 1 if no GPU can be used, with
  // the versions all the same and a last line that says why.
  int (*describe)(char* text, size_t size);
  // Number of GPUs that can be used, which functions->create numbers from 0; 0 with a message that
  // says why there is none.
  int (*count_devices)(char* message, size_t size);
  // Runs a kernel and a matrix product on the first GPU: the check that this build runs there.
  int (*self_test)(char* message, size_t size);
  const finetune::cuda::Functions* functions;  // the operations
};

// Null if `services` has another version.
const FinetuneCudaModule* finetune_cuda_module(const FinetuneHostServices* services);
}
