// Weights of linear layers in bf16, packed once per update into tiles for products. They are stored
// in the memory of their gradients, which is unused between an update and the next backward pass.
//
// A matrix (out, in) is packed in groups of 32 rows. Each group takes the place of its 32 rows of
// gradient, which is 64 * in elements of 16 bits (tiles: tile_pack.h):
//   for x * w^T   the group's panel, [tile of in][half of the 32 rows], 32 * in elements; then
//   for dy * w    a tile of depth of every panel, [16 columns of in], 32 * in elements.
#pragma once

#include <cstdint>
#include <vector>

#include "core/numeric/tensor.h"

namespace finetune::cpu {

class PackedWeights {
 public:
  static constexpr int64_t kGroup = 32;  // rows; columns must also be a multiple of it

  // Whether a matrix of this shape can be packed at this place.
  static bool fits(int64_t rows, int64_t cols, const float* place);

  // Packs the weights w (rows, cols), contiguous, at `place`. Invalidates packed weights of, or in,
  // this memory.
  void pack(const float* w, int64_t rows, int64_t cols, const float* place);
  // Returns the first group of w's rows, or null if some rows are not packed. w: a packed matrix,
  // whole groups of it, or adjacent matrices whose packed groups are adjacent too.
  const uint16_t* find(Tensor w) const;
  // Records that this memory (weights or packed groups) was written.
  void written(const void* data, size_t bytes);
  void written(Tensor x);
  void forget();

 private:
  struct Matrix {
    const float* w;
    int64_t rows, cols;
    const float* place;
    bool valid;
    size_t bytes() const { return size_t(rows * cols) * sizeof(float); }
  };

  std::vector<Matrix> matrices_;  // sorted by w, not overlapping
  bool any_ = false;              // any matrix is valid
};

// Packs 32 rows of w (32, cols), contiguous, as a group; cols a multiple of 32. Only if bf16 is
// multiplied natively (isa.h, multiplies_bf16).
void pack_weight_group(const float* w, int64_t cols, uint16_t* group);

}  // namespace finetune::cpu
