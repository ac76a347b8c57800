// Slabs of whole rows, the unit in which tensors are read and written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace finetune {

// The number of rows (first dimension) per slab for tensors of this shape.
int64_t slab_rows(const std::vector<int64_t>& shape);

// Calls visit(first row, number of rows) for each slab of such a tensor, in order.
template <typename Visit>
void each_slab(const std::vector<int64_t>& shape, Visit&& visit) {
  const int64_t rows = slab_rows(shape);
  for (int64_t first = 0; first < shape[0]; first += rows) {
    visit(first, std::min(rows, shape[0] - first));
  }
}

}  // namespace finetune
