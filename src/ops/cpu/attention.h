// How attention is cut: into heads of sequences, each walked in blocks of queries.
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
  bool another_follows;  // the same thread comes to the head beside this one

  // Element (row, 0) of the head in a tensor of packed queries (or keys).
  template <typename T>
  T* at(Tensor x, int64_t row, int64_t head_size) const {
    return x.as<T>() + row * x.stride + head * head_size;
  }
};

inline HeadTask head_task(const AttentionShape& shape, int64_t task, bool another_follows) {
  const int64_t b = task / shape.heads;
  const int32_t* q = shape.queries.offsets;
  const int32_t* k = shape.keys.offsets;
  const HeadTask t{b,    task % shape.heads, q[b],           q[b + 1] - q[b],
                   k[b], k[b + 1] - k[b],    another_follows};
  FINETUNE_CHECK(t.queries > 0 && t.keys > 0);
  return t;
}

// body(task) for every head of every sequence. Of short sequences, where there are enough of them,
// a thread computes some neighbouring heads, whose rows lie side by side: they take longer to come
// than to compute.
template <typename Body>
void for_heads(const AttentionShape& shape, const Body& body) {
  constexpr int64_t kShort = 128, kGroup = 4, kGroupsOfAThread = 8;
  const int64_t count = shape.queries.count;
  const bool group = shape.keys.max_length <= kShort &&
                     count * shape.heads >= kGroup * kGroupsOfAThread * threads();
  const int64_t size = group ? kGroup : 1, groups = (shape.heads + size - 1) / size;
  for_tasks(count * groups, [&](int64_t i) {
    const int64_t first = i / groups * shape.heads, head = i % groups * size;
    const int64_t end = std::min(head + size, shape.heads);
    for (int64_t h = head; h < end; ++h) body(head_task(shape, first + h, h + 1 < end));
  });
}

// Whether q and what goes with it is for amx_attention.h.
bool attention_on_tiles(const AttentionShape& shape, Tensor q);
// Dropout factors (dropout-inl.h).
const float* attention_factors(const Dropout& dropout, uint32_t row, uint32_t sample, int64_t begin,
                               int64_t count, float* buffer);

}  // namespace finetune::cpu
