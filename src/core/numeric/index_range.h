// A half-open range of indices, and dividing a count into contiguous parts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace finetune {

struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool contains(int64_t index) const { return index >= begin && index < end; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

constexpr int64_t divided_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

// Part k of n contiguous parts of [0, count): sizes differ by at most one, larger parts first.
inline IndexRange part(int64_t count, int64_t parts, int64_t k) {
  FINETUNE_CHECK(count >= 0 && k >= 0 && k < parts);
  const int64_t size = count / parts, larger = count % parts;
  const int64_t begin = k * size + std::min(k, larger);
  return {begin, begin + size + (k < larger)};
}

// The same, but all parts except the last are multiples of `unit`.
inline IndexRange part_in_units(int64_t count, int64_t unit, int64_t parts, int64_t k) {
  const IndexRange units = part(divided_up(count, unit), parts, k);
  return {std::min(count, units.begin * unit), std::min(count, units.end * unit)};
}

}  // namespace finetune
