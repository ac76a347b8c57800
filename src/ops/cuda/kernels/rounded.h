// fp32 matrices in bf16, for matrix products.
#pragma once

#include <map>

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

// to = x to the nearest, ties to even; of the same shape
void round(Context& context, Matrix x, Bf16Matrix to);
void widen(Context& context, Bf16Matrix x, Matrix to);  // to = x

// Rows of rounded matrices begin at multiples of 16 bytes, as tensor cores want them.
constexpr int64_t rounded_stride(int64_t cols) {
  return (cols + 7) / 8 * 8;
}

// The weights that products have asked for, in bf16, rounded anew once they have changed. Updates
// write the rounded values as well (target); whatever else writes to memory in which weights may
// lie says so (forget). No two copies overlap.
class RoundedWeights {
 public:
  // `memory` outlives it, and frees the copies that are left.
  explicit RoundedWeights(DeviceMemory& memory) : memory_(memory) {}
  RoundedWeights(const RoundedWeights&) = delete;
  RoundedWeights& operator=(const RoundedWeights&) = delete;

  // w or a bias, w.rows == 1, in bf16; true until the next call that changes it.
  Bf16Matrix of(Context& context, Matrix w);
  // Where who writes elements [first, first + count) puts their rounded values too. Null: nowhere.
  bfloat16* target(const float* first, int64_t count);
  void forget(const void* begin, size_t bytes);  // it has been written
  void refresh(Context& context);                // all copies, those that nobody asks for as well
  void drop(const void* begin, size_t bytes);    // it is released; the device is at rest

 private:
  struct Copy {
    Matrix from;
    Bf16Matrix to;
    bool fresh = false;
    const float* end() const { return from.row(from.rows - 1) + from.cols; }
  };
  using Copies = std::map<const float*, Copy>;       // by from.data
  Copies::iterator first_behind(const void* begin);  // the first that ends behind it

  DeviceMemory& memory_;
  Copies copies_;
};

}  // namespace finetune::cuda
