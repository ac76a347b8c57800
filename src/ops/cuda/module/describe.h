// What `finetune doctor` tells of the GPU.
#pragma once

#include <string>
#include <vector>

namespace finetune::cuda {

// Lines "name: value" of versions and devices; false if no GPU can be used.
bool describe(std::string& text);
// CUDA's numbers of the GPUs that can be used; `problem` says why there is none.
std::vector<int> usable_devices(std::string& problem);
// "ok", or what went wrong.
bool self_test(std::string& message);

}  // namespace finetune::cuda
