// Outputs that are no numbers: an error, in place of metrics that take them for good.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace finetune {

// Error(diverged) if one of them is NaN or infinite; `of`: "row 7", "question '1'".
void require_finite(std::span<const float> outputs, std::string_view of);
// The same of a row by its place, from 0.
void require_finite_row(std::span<const float> outputs, int64_t row);

}  // namespace finetune
