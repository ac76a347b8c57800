// How many rows of a tensor make a slab.
#include "weights/tensor_slabs.h"

namespace finetune {

int64_t slab_rows(const std::vector<int64_t>& shape) {
  constexpr int64_t kSlabFloats = int64_t{1} << 22;
  int64_t floats = 1;
  for (size_t d = 1; d < shape.size(); ++d) floats *= shape[d];
  return std::max<int64_t>(1, kSlabFloats / std::max<int64_t>(floats, 1));
}

}  // namespace finetune
