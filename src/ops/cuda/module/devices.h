// The GPUs of this machine, and those that the module's kernels have code for.
#pragma once

#include <string>
#include <vector>

namespace finetune::cuda {

// CUDA's numbers of the usable GPUs; if there are none `problem` says why.
std::vector<int> usable_devices(std::string& problem);
// A line "GPU 0: NVIDIA A100, sm_80, 108 multiprocessors, 81920 MiB" for each GPU, or why there is
// none. An unusable one's line says so and why.
std::string describe_devices();

}  // namespace finetune::cuda
