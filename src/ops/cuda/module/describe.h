// GPU information for `finetune doctor`.
#pragma once

#include <string>

namespace finetune::cuda {

// Appends lines "name: value" with versions and devices; returns false if no GPU can be used.
bool describe(std::string& text);
// `message` becomes "ok" or the problem.
bool self_test(std::string& message);

}  // namespace finetune::cuda
