// The filters of chunks: deflate, shuffle and the Fletcher checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

enum class Filter : uint16_t { deflate = 1, shuffle = 2, fletcher32 = 3 };

// An upper bound of the compression ratio (deflate: 1032 to 1).
constexpr uint64_t kMostCompression = 1100;

// Returns the filters in the order of application. Fault: an unknown or repeated filter.
std::vector<Filter> parse_filters(std::string_view message, Widths widths);

// Restores the `size` bytes of a chunk with elements of `element_size` bytes. Bit i of `skipped`:
// filter i was not applied. Fault: damaged, or not `size` bytes.
std::string unfiltered(std::string stored, const std::vector<Filter>& filters, uint32_t skipped,
                       uint64_t size, uint32_t element_size);

}  // namespace finetune::hdf5
