// Products of one head's small matrices, shared by the attention kernels.
#if defined(FINETUNE_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FINETUNE_CPU_ATTENTION_INL_H_
#undef FINETUNE_CPU_ATTENTION_INL_H_
#else
#define FINETUNE_CPU_ATTENTION_INL_H_
#endif

#include "ops/cpu/attention/attention.h"
#include "ops/cpu/gemm/fp32_microkernel-inl.h"
#include "ops/cpu/kernels/dropout-inl.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {

// c (rows, cols) = or += op(a) (rows, depth) * b (depth, cols); cols is a multiple of kLanes.
template <bool kTranspose>
HWY_NOINLINE void product(int64_t rows, int64_t cols, int64_t depth, Left a, const float* b,
                          int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t col = 0; col < cols; col += 2 * kLanes) {
    for (int64_t i = 0; i < tiles; ++i) {  // tiles of nearly equal height
      const int64_t row = rows * i / tiles, height = rows * (i + 1) / tiles - row;
      const Left part{a.data + row * (kTranspose ? 1 : a.stride), a.stride};
      float* to = c + row * ldc + col;
      if (col + kLanes < cols) {
        tile_of<kTranspose, kTileRows, 2>(height, part, b + col, ldb, to, ldc, depth, accumulate);
      } else {
        tile_of<kTranspose, kTileRows, 1>(height, part, b + col, ldb, to, ldc, depth, accumulate);
      }
    }
  }
}

}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FINETUNE_CPU_ATTENTION_INL_H_
