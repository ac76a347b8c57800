// What elements are and how many: the messages datatype and dataspace.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

struct Type {
  enum class Kind { real, brain, integer, natural, text, other };  // brain: bfloat16
  Kind kind = Kind::other;
  uint32_t size = 0;  // of an element, in bytes
  bool big_endian = false;
  const char* name = "";  // of its class, for messages
};

struct Space {
  std::vector<int64_t> shape;       // empty: one element
  std::vector<int64_t> most_shape;  // what it may grow to; -1: without bound
  bool is_null = false;             // no elements at all
};

// Types that are neither numbers nor texts of fixed size become Kind::other.
Type parse_type(std::string_view message, Widths widths);
Space parse_space(std::string_view message, Widths widths);

// The bytes of so many elements; kUndefined if no number of 63 bits holds them.
uint64_t bytes_of(const std::vector<int64_t>& shape, uint64_t element_size);

}  // namespace finetune::hdf5
