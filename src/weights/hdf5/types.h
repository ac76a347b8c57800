// The type and number of elements of a dataset, and converting elements to floats.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

struct Type {
  enum class Kind { real, brain, integer, natural, text, other };  // brain: bfloat16
  Kind kind = Kind::other;
  uint32_t size = 0;  // bytes of an element
  bool big_endian = false;
  const char* name = "";  // of the datatype class, for messages
};

struct Space {
  std::vector<int64_t> shape;  // empty: one element
  bool is_null = false;        // has no elements at all
};

// Types other than numbers and fixed-size texts become Kind::other.
Type parse_type(std::string_view message, Widths widths);
Space parse_space(std::string_view message, Widths widths);

// The bytes of all elements; kUndefined if they exceed 63 bits.
uint64_t bytes_of(const std::vector<int64_t>& shape, uint64_t element_size);

// Whether elements of this type can be converted.
bool is_number(const Type& type);
// Whether the stored elements are floats as this machine has them, so that they need no conversion.
bool is_plain_float(const Type& type);

// Converts `count` elements; `from` may be unaligned.
void to_floats(const Type& type, const char* from, uint64_t count, float* out);

}  // namespace finetune::hdf5
