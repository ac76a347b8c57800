// Attention on tiles (tile_pack.h) with queries, keys and values in bf16 (ops/backend.h).
// Probabilities and their gradients are rounded to bf16 as operands; sums and exponentials are
// fp32.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

// Dropout factors of elements [begin, begin + count) of a row. Returns their address in `buffer`,
// which holds count + 256 floats (dropout-inl.h).
using DropoutRange = const float* (*)(const Dropout& dropout, uint32_t row, uint32_t sample,
                                      int64_t begin, int64_t count, float* buffer);

bool has_bf16_attention(int64_t head_size);
void bf16_attention(const AttentionShape& shape, const Dropout& dropout, DropoutRange range,
                    Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse);
void bf16_attention_backward(const AttentionShape& shape, const Dropout& dropout,
                             DropoutRange range, Tensor q, Tensor k, Tensor v, Tensor lse,
                             Tensor dout, Tensor dq, Tensor dk, Tensor dv);

}  // namespace finetune::cpu
