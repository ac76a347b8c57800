// Loads finetune_cuda.so from the program's folder or its library folder.
#pragma once

#include <string>

#include "ops/cuda/module/module.h"

namespace finetune {

struct CudaModule {
  const FinetuneCudaModule* functions = nullptr;  // null if it cannot be used
  std::string problem;                            // why, for a person
};

// The module stays loaded until the program ends. Loading is slow and takes much memory, so it is
// done only for `--device cuda` and `doctor`.
const CudaModule& cuda_module();

// Returns true if an NVIDIA device node exists and CUDA_VISIBLE_DEVICES does not hide all GPUs.
// Cheap: loads nothing.
bool gpu_may_be_present();

// Returns the number of usable GPUs; for 0 `problem` says why. Loads the module.
int count_gpus(std::string& problem);

}  // namespace finetune
