// Converts elements of any numeric type to floats.
#pragma once

#include <cstdint>

#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

// Whether elements of this type can be converted.
bool is_number(const Type& type);
// Whether the elements are floats as in memory.
bool is_plain_float(const Type& type);

// Converts `count` elements; `from` may be unaligned.
void to_floats(const Type& type, const char* from, uint64_t count, float* out);

}  // namespace finetune::hdf5
