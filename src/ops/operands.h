// What operations take beside tensors and numbers: plain structures, the same in the program and,
// as they cross its boundary, in the CUDA module. Pointers are backend memory.
#pragma once

#include <cstdint>

namespace finetune {

enum class Activation { gelu, gelu_tanh, relu, silu, tanh };

// Names each row of a (rows, cols) tensor for dropout (core/numeric/philox.h): its token's position
// inside the sequence and its sample's place in the global batch. Element (r, c) takes
// dropout_bits(key, position[r], sample[r], step, c). Not read where dropout is off.
struct RowNames {
  const uint32_t* position = nullptr;  // (rows)
  const uint32_t* sample = nullptr;    // (rows)
};

// Where sequences lie in packed rows: sequence b owns rows [offsets[b], offsets[b+1]).
struct Segments {
  int64_t count = 0;                 // B
  int64_t max_length = 0;            // of all segments
  const int32_t* offsets = nullptr;  // (B+1), offsets[0] == 0
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
  const uint32_t* samples = nullptr;  // (B) place in the global batch, names the dropout stream
  int64_t first_head = 0;  // of the model's heads: names the dropout stream with the head's own
  uint32_t head_name(int64_t head) const { return uint32_t(first_head + head); }
};

// What a loss's gradient is multiplied by: a number, or each sample's own. Where that is 0 the loss
// is 0 as well, whatever the logits are.
struct LossScale {
  float all = 1;
  const float* each = nullptr;  // (B) or null

  constexpr LossScale(float scale) : all(scale) {}
  constexpr explicit LossScale(const float* scales) : each(scales) {}
  // For who can read them.
  constexpr float of(int64_t sample) const { return each ? each[sample] : all; }
};

// What a step has added up.
struct StepSums {
  const double* losses = nullptr;  // (shards) of add_losses
  int64_t shards = 0;
  double denominator = 1;           // of the loss
  const double* squares = nullptr;  // (blocks) of block_square_sums
  int64_t blocks = 0;
  double max_norm = 0;                    // of clipping; 0: none
  const double* stop_requests = nullptr;  // (processes) integers, at least 0: to stop, 0: none
  int64_t processes = 0;
};

// Some rows of a matrix, distinct and ascending.
struct RowList {
  const int32_t* rows = nullptr;  // (count)
  int64_t count = 0;
};

// What is known of an arena that ends with a matrix most of whose rows are zero: all elements from
// `first` on are, but for these rows. Row r starts at first + r * cols. cols == 0: nothing is
// known.
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
