// Values drawn at random from the ranges of a sweep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/sweep/grid/grid_file.h"

namespace finetune {

// Returns draw `number` of the option as text. `whole`: the range has whole numbers only. The
// result depends only on the arguments, so that more draws continue earlier ones.
std::string drawn_value(const std::string& option, const SweptRange& range, bool whole,
                        uint64_t seed, uint32_t number);

}  // namespace finetune
