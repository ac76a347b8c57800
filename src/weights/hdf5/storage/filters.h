// The filters of chunks: deflate, shuffle and Fletcher's checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

enum class Filter : uint16_t { deflate = 1, shuffle = 2, fletcher32 = 3 };

// No compression of theirs shrinks more (deflate: 1032 to 1).
constexpr uint64_t kMostCompression = 1100;

// The filters in the order in which they were applied. Fault: an unknown one, or one twice.
std::vector<Filter> parse_filters(std::string_view message, Widths widths);

// The `size` bytes of a chunk, of elements of `element_size`, from what is stored. Bit i of
// `skipped` says that filter i was left out. Fault: damaged, or other than `size` bytes.
std::string unfiltered(std::string stored, const std::vector<Filter>& filters, uint32_t skipped,
                       uint64_t size, uint32_t element_size);

}  // namespace finetune::hdf5
