// Parameters of operations beside tensors and numbers: plain structures. The program and, across
// its boundary, the CUDA module use the same ones. Pointers are backend memory.
#pragma once

#include <cstdint>

namespace finetune {

enum class Activation { gelu, gelu_tanh, relu, silu, tanh };

// Names each row of a (rows, cols) tensor for dropout (core/numeric/philox.h): its token's position
// in the sequence and its sample's place in the global batch. Element (r, c) uses dropout_bits(key,
// position[r], sample[r], step, c). Not read if dropout is off.
struct RowNames {
  const uint32_t* position = nullptr;  // (rows)
  const uint32_t* sample = nullptr;    // (rows)
};

// The sequences in packed rows: sequence b owns rows [offsets[b], offsets[b+1]).
struct Segments {
  int64_t count = 0;                 // B
  int64_t max_length = 0;            // of all segments
  const int32_t* offsets = nullptr;  // (B+1), offsets[0] == 0
};

// The bucket, 0 to 31, of a key that is `distance` tokens behind its query. For each sign the eight
// nearest distances have a bucket each; others grow by a factor sqrt(2) up to 91 (MPNet; T5's
// function with 32 buckets up to 128). In integers, so that every backend has the same buckets.
constexpr int32_t kPositionBuckets = 32;
constexpr int32_t position_bucket(int64_t distance) {
  constexpr int64_t kFarther[] = {12, 16, 23, 32, 46, 64, 91};
  const int64_t apart = distance < 0 ? -distance : distance;
  int64_t bucket = apart < 8 ? apart : 8;
  for (int64_t begin : kFarther) bucket += apart >= begin;
  return int32_t(bucket + (distance > 0 ? kPositionBuckets / 2 : 0));
}

// The values that attention adds to scores: by head and distance key - query
// (Backend::position_bias), or by head and pair (Backend::pair_scores).
struct PositionBias {
  // (heads, 2 * span - 1): of distances 1 - span to span - 1; null: nothing is added.
  const float* values = nullptr;
  int64_t span = 0;  // at least the longest sequence
  // > 0: values and gradients are by pair, (heads, query_rows, span): each query has a row for its
  // sequence's keys. The gradient may be the same memory.
  int64_t query_rows = 0;
  // Written by attention_backward; null: not wanted. By distance: (heads, gradient_stride) with
  // gradient_stride = 2 * Tk. The columns of a sequence begin at 2 * its first key, for distances
  // 1 - length to length - 1.
  float* gradient = nullptr;
  int64_t gradient_stride = 0;

  constexpr bool on() const { return values != nullptr; }
  constexpr bool of_pairs() const { return query_rows > 0; }
  // The value of a query's key 0; keys follow each other. `first`: the sequence's first query.
  constexpr const float* row(int64_t head, int64_t first, int64_t query) const {
    return of_pairs() ? values + pair_row(head, first + query)
                      : values + head * (2 * span - 1) + span - 1 - query;
  }
  constexpr float* gradients(int64_t head, int64_t first_key) const {
    return gradient + head * gradient_stride + 2 * first_key;
  }
  constexpr float* gradient_row(int64_t head, int64_t first_key, int64_t keys,
                                int64_t query) const {
    return gradients(head, first_key) + keys - 1 - query;
  }
  constexpr int64_t pair_row(int64_t head, int64_t query) const {
    return (head * query_rows + query) * span;
  }
};

// The row of a table of relative positions for a pair, by distance query - key. Rows ascend with
// the distance, but not always by one.
struct RelativeRows {
  const int32_t* rows = nullptr;  // (2 * span - 1): of distances 1 - span to span - 1
  int64_t span = 0;               // at least the longest sequence
  int64_t first = 0;              // row 0 of the operands is this row of the table

  constexpr int64_t of(int64_t distance) const { return rows[distance + span - 1] - first; }
};

// Attention of packed sequences. Queries and keys may have different segments: the last layer of
// classification has one query per sequence, its first token. Query i of sequence b always has
// position i in its sequence.
struct AttentionShape {
  int64_t heads = 0;
  int64_t head_size = 0;
  float scale = 1.0f;  // 1 / sqrt(head_size)
  Segments queries;
  Segments keys;
  const uint32_t* samples = nullptr;  // (B) place in the global batch; selects the dropout stream
  // number of the first head in the whole model; selects the dropout stream
  int64_t first_head = 0;
  PositionBias bias = {};
  // Query i sees only keys i - window ... i + window of its sequence; < 0: it sees all keys.
  int64_t window = -1;
  uint32_t head_name(int64_t head) const { return uint32_t(first_head + head); }
  // The keys that query i sees of `keys` keys.
  constexpr int64_t first_key(int64_t i) const {
    return window >= 0 && i > window ? i - window : 0;
  }
  constexpr int64_t end_key(int64_t i, int64_t keys) const {
    return window >= 0 && i + window + 1 < keys ? i + window + 1 : keys;
  }
};

// The factor of a loss's gradient: one number, or one per sample. If it is 0 the loss is 0 as well,
// whatever the logits are.
struct LossScale {
  float all = 1;
  const float* each = nullptr;  // (B) or null

  constexpr LossScale(float scale) : all(scale) {}
  constexpr explicit LossScale(const float* scales) : each(scales) {}
  // Call only from code that can read the memory.
  constexpr float of(int64_t sample) const { return each ? each[sample] : all; }
};

// The sums of a step.
struct StepSums {
  const double* losses = nullptr;  // (shards) of add_losses
  int64_t shards = 0;
  double denominator = 1;           // divides the loss
  const double* squares = nullptr;  // (blocks) of block_square_sums
  int64_t blocks = 0;
  double max_norm = 0;                    // for clipping; 0: no clipping
  const double* stop_requests = nullptr;  // (processes) integers; > 0: to stop
  int64_t processes = 0;
};

// A list of matrix rows, distinct and ascending.
struct RowList {
  const int32_t* rows = nullptr;  // (count)
  int64_t count = 0;
};

// States that an arena ends with a matrix most of whose rows are zero: all elements from `first` on
// are zero except these rows. Row r starts at first + r * cols. cols == 0: nothing is known.
struct SparseRows {
  int64_t first = 0;
  int64_t cols = 0;
  RowList nonzero;
};

// to += from
struct Addition {
  float* to = nullptr;
  float* from = nullptr;
};

}  // namespace finetune
