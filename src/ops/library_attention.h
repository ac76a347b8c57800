// Which attention calls a GPU library's fused kernels take, and the sizes of their plans.
// Where these are asked for (ops/cuda/attention/fused.h). The module's calls and the forecast of
// its memory must agree.
#pragma once

#include <bit>
#include <cstdint>

namespace finetune::library_attention {

// Up to this length own kernels compute. Not measured: no GPU has shown yet where to change.
constexpr int64_t kOwnLength = 128;

// Sequences of the plan for a call of so many: four steps between powers of two from 8 on (8, 10,
// 12, 14, 16, 20, ...). A plan computes and has memory for at most a quarter more than the call
// has.
constexpr int64_t planned_sequences(int64_t sequences) {
  constexpr int64_t kLeast = 8;
  if (sequences <= kLeast) return kLeast;
  const int64_t step = int64_t(std::bit_floor(uint64_t(sequences))) / 4;
  return (sequences + step - 1) / step * step;
}

// Its longest sequence: multiples of 128.
constexpr int64_t planned_length(int64_t longest) {
  constexpr int64_t kStep = 128;
  return (longest + kStep - 1) / kStep * kStep;
}

}  // namespace finetune::library_attention
