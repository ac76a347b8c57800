// How attention is cut: one task is one head of one sequence, walked in blocks of queries.
#pragma once

#include "ops/backend.h"

namespace finetune::cpu {

constexpr int64_t kQueryBlock = 48;

// One head of one sequence: pointers to its first element, rows as in the tensors.
struct HeadTask {
  int64_t sequence, head;
  int64_t first_query, queries;
  int64_t first_key, keys;

  // Element (row, 0) of the head in a tensor of packed queries (or keys).
  float* at(Tensor x, int64_t row, int64_t head_size) const {
    return x.f32() + row * x.stride + head * head_size;
  }
};

inline HeadTask head_task(const AttentionShape& shape, int64_t task) {
  const int64_t b = task / shape.heads;
  const int32_t* q = shape.queries.offsets;
  const int32_t* k = shape.keys.offsets;
  const HeadTask t{b, task % shape.heads, q[b], q[b + 1] - q[b], k[b], k[b + 1] - k[b]};
  FINETUNE_CHECK(t.queries > 0 && t.keys > 0);
  return t;
}

}  // namespace finetune::cpu
