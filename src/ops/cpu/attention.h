// How attention is cut: one task is one head of one sequence, walked in blocks of queries.
#pragma once

#include "ops/backend.h"
#include "ops/cpu/tasks.h"

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

// body(task) for every head of every sequence. Of short ones a thread computes some neighbours,
// whose rows lie side by side: they take longer to come than to compute.
template <typename Body>
void for_heads(const AttentionShape& shape, const Body& body) {
  constexpr int64_t kShort = 64;
  const int64_t count = shape.queries.count;
  const int64_t neighbours = shape.keys.offsets[count] <= kShort * count ? 4 : 1;
  const int64_t groups = (shape.heads + neighbours - 1) / neighbours;
  for_tasks(count * groups, [&](int64_t i) {
    const int64_t first = i / groups * shape.heads, head = i % groups * neighbours;
    const int64_t end = std::min(head + neighbours, shape.heads);
    for (int64_t h = head; h < end; ++h) body(head_task(shape, first + h));
  });
}

}  // namespace finetune::cpu
