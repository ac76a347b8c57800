// Rounds fp32 matrices to bf16 for matrix products.
#pragma once

#include <map>

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

// to = x to the nearest, ties to even; of the same shape
void round(Context& context, Matrix x, Bf16Matrix to);
void widen(Context& context, Bf16Matrix x, Matrix to);  // to = x

// Rows of rounded matrices begin at multiples of 16 bytes, as tensor cores need.
constexpr int64_t rounded_stride(int64_t cols) {
  return (cols + 7) / 8 * 8;
}

// bf16 copies of the weights used in products, rounded again after a change. Updates also write the
// rounded values (target); anything else that writes to memory that may hold weights must call
// forget(). Copies never overlap.
class RoundedWeights {
 public:
  // `memory` must outlive it; it frees the remaining copies.
  explicit RoundedWeights(DeviceMemory& memory) : memory_(memory) {}
  RoundedWeights(const RoundedWeights&) = delete;
  RoundedWeights& operator=(const RoundedWeights&) = delete;

  // Returns w, or a bias (w.rows == 1), in bf16; valid until the next call that changes it. A view
  // of weights that have a copy is a view of that copy.
  Bf16Matrix of(Context& context, Matrix w);
  // Where a writer of elements [first, first + count) must also write their rounded values. Null:
  // nowhere.
  bfloat16* target(const float* first, int64_t count);
  void forget(const void* begin, size_t bytes);  // after it has been written
  void refresh(Context& context);                // updates all copies, used or not
  void drop(const void* begin, size_t bytes);    // after it is released; the device must be idle

 private:
  struct Copy {
    Matrix from;
    Bf16Matrix to;
    bool fresh = false;
    const float* end() const { return from.row(from.rows - 1) + from.cols; }
  };
  static bfloat16* place_in(const Copy& copy, const Matrix& w);
  using Copies = std::map<const float*, Copy>;       // by from.data
  Copies::iterator first_behind(const void* begin);  // the first copy that ends behind `begin`

  DeviceMemory& memory_;
  Copies copies_;
};

}  // namespace finetune::cuda
