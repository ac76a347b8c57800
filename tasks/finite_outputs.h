// Outputs that are no numbers: an error, in place of metrics that take them for good.
#pragma once

#include <span>
#include <string>

#include "core/error.h"

namespace finetune {

bool all_finite(std::span<const float> outputs);
// Error(diverged) for outputs that are not; `of`: "row 7", "question '1'".
Error not_finite(const std::string& of);

}  // namespace finetune
