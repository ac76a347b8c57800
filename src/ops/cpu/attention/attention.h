// Splits attention into heads of sequences, each processed in blocks of queries.
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
  // at the first head of a sequence on this thread: the number of its heads to compute; else 0
  int64_t heads_to_come;
  bool another_follows;  // the next head probably comes next on the same thread

  // Element (row, 0) of the head in a tensor of packed queries (or keys).
  template <typename T>
  T* at(Tensor x, int64_t row, int64_t head_size) const {
    return x.as<T>() + row * x.stride + head * head_size;
  }
};

// The keys that queries [first, first + count) of a sequence see, from a multiple of 32 on, so
// that sums over them use the same lanes and tiles wherever the window is.
struct SeenKeys {
  static constexpr int64_t kAlignment = 32;
  int64_t begin, count;

  SeenKeys(const AttentionShape& shape, int64_t first, int64_t queries, int64_t keys)
      : begin(shape.first_key(first) / kAlignment * kAlignment),
        count(shape.end_key(first + queries - 1, keys) - begin) {}
  // The most keys that a block of this many queries sees.
  static int64_t most(const AttentionShape& shape, int64_t queries, int64_t keys) {
    if (shape.window < 0) return keys;
    return std::min(keys, queries + 2 * shape.window + kAlignment);
  }
};

// The keys of one query, counted from `seen.begin`.
struct QueryKeys {
  int64_t begin, end;

  QueryKeys(const AttentionShape& shape, const SeenKeys& seen, int64_t query, int64_t keys)
      : begin(shape.first_key(query) - seen.begin), end(shape.end_key(query, keys) - seen.begin) {}
};

inline HeadTask head_task(const AttentionShape& shape, int64_t sequence, int64_t head) {
  const int32_t* q = shape.queries.offsets + sequence;
  const int32_t* k = shape.keys.offsets + sequence;
  const HeadTask t{sequence, head, q[0], q[1] - q[0], k[0], k[1] - k[0], 0, false};
  FINETUNE_CHECK(t.queries > 0 && t.keys > 0);
  return t;
}

// The number of heads of a sequence that a thread computes one after the other. For many short
// sequences it is all or some neighbouring heads, whose rows are adjacent in memory: loading them
// takes longer than computing them.
inline int64_t heads_at_once(const AttentionShape& shape) {
  constexpr int64_t kShort = 128, kTasksOfAThread = 8, kSome = 4;
  if (shape.keys.max_length > kShort) return 1;
  const int64_t wanted = kTasksOfAThread * threads(), sequences = shape.queries.count;
  if (sequences >= wanted) return shape.heads;
  return sequences * shape.heads >= kSome * wanted ? kSome : 1;
}

// Calls body(task) for every head of every sequence.
template <typename Body>
void for_heads(const AttentionShape& shape, const Body& body) {
  const int64_t size = heads_at_once(shape), groups = (shape.heads + size - 1) / size;
  for_tasks(shape.queries.count * groups, [&](int64_t i) {
    const int64_t begin = i % groups * size, end = std::min(begin + size, shape.heads);
    for (int64_t head = begin; head < end; ++head) {
      HeadTask task = head_task(shape, i / groups, head);
      task.heads_to_come = head == begin ? end - begin : 0;
      task.another_follows = head + 1 < (size > 1 ? end : shape.heads);
      body(task);
    }
  });
}

// Whether bf16_attention.h handles these tensors.
bool attention_on_tiles(const AttentionShape& shape, Tensor q);
// Dropout factors (dropout-inl.h).
const float* attention_factors(const Dropout& dropout, uint32_t row, uint32_t sample, int64_t begin,
                               int64_t count, float* buffer);

}  // namespace finetune::cpu
