// Elements of any kind of number, as floats.
#pragma once

#include <cstdint>

#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

// Whether they can be converted.
bool is_number(const Type& type);
// Whether they are floats as they are in memory.
bool is_plain_float(const Type& type);

// Converts `count` elements; `from` may be of any alignment.
void to_floats(const Type& type, const char* from, uint64_t count, float* out);

}  // namespace finetune::hdf5
