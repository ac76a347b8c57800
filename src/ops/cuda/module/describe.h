// GPU information for `finetune doctor`.
#pragma once

#include <string>
#include <vector>

namespace finetune::cuda {

// Appends lines "name: value" with versions and devices; returns false if no GPU can be used.
bool describe(std::string& text);
// CUDA's numbers of the usable GPUs; if there are none `problem` says why.
std::vector<int> usable_devices(std::string& problem);
// `message` becomes "ok" or the problem.
bool self_test(std::string& message);

}  // namespace finetune::cuda
