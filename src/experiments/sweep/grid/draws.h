// Values drawn at random from the ranges of a sweep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/sweep/grid/grid_file.h"

namespace finetune {

// Draw number `number` of the option, as a word. `whole`: of whole numbers. It depends on what is
// given here and on nothing else, so that draws go on where others ended.
std::string drawn_value(const std::string& option, const SweptRange& range, bool whole,
                        uint64_t seed, uint32_t number);

}  // namespace finetune
