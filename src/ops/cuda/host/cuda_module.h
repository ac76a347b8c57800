// Loads finetune_cuda.so, which lies beside the program or in its library folder.
#pragma once

#include <string>

#include "ops/cuda/module/module.h"

namespace finetune {

struct CudaModule {
  const FinetuneCudaModule* functions = nullptr;  // null if it cannot be used
  std::string problem;                            // why, for a person
};

// The module stays loaded until the program ends. Loading takes a moment and much memory: only for
// `--device cuda` and `doctor`.
const CudaModule& cuda_module();

// True if an NVIDIA device node is there and CUDA_VISIBLE_DEVICES does not hide all GPUs. A cheap
// question that loads nothing.
bool gpu_may_be_present();

// Number of GPUs that the module can use, and for 0 why there is none. Loads it.
int count_gpus(std::string& problem);

}  // namespace finetune
