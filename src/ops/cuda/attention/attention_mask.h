// Dropout masks of attention's probabilities as bits, computed before they are used repeatedly. One
// Philox block has the bits of eight probabilities (core/numeric/philox.h) that no tile holds
// together.
#pragma once

#include "ops/attention_masks.h"
#include "ops/cuda/module/context.h"

namespace finetune::cuda {

// Bit i * keys + j of (head, sequence b) is set if probability (i, j) is kept. words == nullptr:
// all are kept.
struct AttentionMask {
  const uint64_t* words;
  int64_t query_rows, row_words;  // rows of all sequences; words per row, plus one at the end

  __device__ const uint64_t* of(int64_t head, int64_t first_query) const {
    return words ? words + (head * query_rows + first_query) * row_words : nullptr;
  }
};

// 64 bits from `first` on; the caller ignores bits beyond its own
__device__ inline uint64_t mask_bits(const uint64_t* words, int64_t first) {
  if (!words) return ~uint64_t{0};
  const int shift = int(first % 64);
  const uint64_t low = words[first / 64] >> shift;
  return shift == 0 ? low : low | words[first / 64 + 1] << (64 - shift);
}

// Made in `memory` or, if that is absent, in scratch memory: then valid until the next call.
AttentionMask attention_mask(Context& context, const AttentionShape& shape, const Dropout& dropout,
                             int64_t query_rows, Matrix memory);
// The one that a call with the same arguments has made in `memory`.
AttentionMask kept_attention_mask(const AttentionShape& shape, const Dropout& dropout,
                                  int64_t query_rows, Matrix memory);

}  // namespace finetune::cuda
