// Which attention calls use a GPU library's fused kernels, and the sizes of their plans. The
// library is optional (ops/cuda/attention/fused.h). The module's calls and the forecast of its
// memory must agree.
#pragma once

#include <bit>
#include <cstdint>

namespace finetune::library_attention {

// Up to this length the module's own kernels compute. Not measured on a GPU yet.
constexpr int64_t kOwnLength = 128;

// The number of sequences of the plan for a call: four steps between powers of two from 8 on (8,
// 10, 12, 14, 16, 20, ...). A plan computes and allocates for at most a quarter more than the call
// has.
constexpr int64_t planned_sequences(int64_t sequences) {
  constexpr int64_t kLeast = 8;
  if (sequences <= kLeast) return kLeast;
  const int64_t step = int64_t(std::bit_floor(uint64_t(sequences))) / 4;
  return (sequences + step - 1) / step * step;
}

// The plan's longest sequence: a multiple of 128.
constexpr int64_t planned_length(int64_t longest) {
  constexpr int64_t kStep = 128;
  return (longest + kStep - 1) / kStep * kStep;
}

}  // namespace finetune::library_attention
