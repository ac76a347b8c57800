// Slabs of whole rows, in which tensors go to files and come from them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace finetune {

// Rows (of the first dimension) of a slab, in which tensors of this shape are written and read.
int64_t slab_rows(const std::vector<int64_t>& shape);

// visit(first row, number of rows) for each slab of such a tensor, in order.
template <typename Visit>
void each_slab(const std::vector<int64_t>& shape, Visit&& visit) {
  const int64_t rows = slab_rows(shape);
  for (int64_t first = 0; first < shape[0]; first += rows) {
    visit(first, std::min(rows, shape[0] - first));
  }
}

}  // namespace finetune
