// Weights of linear layers in bf16, packed once an update into the tiles that products read. They
// lie where their gradients were: nobody needs these between the update and the next backward
// pass.
//
// A matrix (out, in) is packed in groups of 32 rows, each in the place of its gradient's 32 rows,
// which are 64 * in elements of 16 bits (tiles: tile_pack.h):
//   for x * w^T   the group's panel, [tile of in][half of the 32 rows], 32 * in elements; then
//   for dy * w    a tile of depth of every panel, [16 columns of in], 32 * in elements.
#pragma once

#include <cstdint>
#include <vector>

#include "core/numeric/tensor.h"

namespace finetune::cpu {

class PackedWeights {
 public:
  static constexpr int64_t kGroup = 32;  // rows; columns come in as many

  // Whether a matrix of this shape and memory for it can be used.
  static bool fits(int64_t rows, int64_t cols, const float* place);

  // The weights w (rows, cols), contiguous, are packed at `place`. What was packed of or in this
  // memory before is forgotten.
  void pack(const float* w, int64_t rows, int64_t cols, const float* place);
  // The first group of w's rows; null if some of it is not packed. w: what has been packed, whole
  // groups of it, or several matrices that follow each other as their packed groups do.
  const uint16_t* find(Tensor w) const;
  // This memory is written: weights or packed groups.
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

  std::vector<Matrix> matrices_;  // by w, with no weights in common
  bool any_ = false;              // is valid
};

// Packs 32 rows of w (32, cols), contiguous, as a group; cols a multiple of 32. Only where tiles
// are multiplied (isa.h, multiplies_bf16).
void pack_weight_group(const float* w, int64_t cols, uint16_t* group);

}  // namespace finetune::cpu
