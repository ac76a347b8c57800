// Attention with scores by relative position (Backend::pair_scores): a pass's tables beside the
// activations, and the attention of a layer's shard.
#pragma once

#include <memory>

#include "model/encoder_layer.h"
#include "ops/backend.h"

namespace finetune {

// The row of the table for each distance, and names of the rows for dropout, in the backend's
// memory.
class RelativeTables {
 public:
  RelativeTables() = default;  // for a model without relative positions
  // For texts of up to `tokens` tokens.
  RelativeTables(Backend& backend, const EncoderConfig& config, int64_t tokens);

  static int64_t floats(const EncoderConfig& config, int64_t tokens);
  // For operands whose row 0 is the table's row `first`.
  RelativeRows rows(int64_t first) const;
  RowNames names(int64_t first) const;

 private:
  std::shared_ptr<void> memory_;
  int64_t span_ = 0, table_rows_ = 0;
};

// The rows that texts of up to `longest` tokens use.
struct RowsInUse {
  int64_t first, count;
  RowsInUse(const RelativeBlock& relative, int64_t longest)
      : first(relative.row_of(1 - longest)), count(relative.row_of(longest - 1) - first + 1) {}
};

// A shard's operands of attention, or their gradients, as they lie in memory.
struct Heads {
  Tensor q, k, v;
};

// Attention of one shard, some heads at a time.
class RelativeAttention {
 public:
  RelativeAttention(const LayerPass& pass, size_t shard, float* weights);

  void forward(const Heads& heads, Tensor context, Tensor log_sums) const;
  void backward(const Heads& heads, const Heads& dheads, Tensor context, Tensor dcontext,
                Tensor log_sums) const;
  // After backward(), and after the shard's gradients of queries and keys are in `arena`: adds the
  // projections' gradients there, and the table's to the sum over the layers.
  void project_back(float* arena) const;

 private:
  // One of the two projections of the table.
  struct Side {
    Slot weight, bias;
    bool own = false;  // false: the weights of tokens' queries or keys are used
    int64_t values = kAbsent, gradient = kAbsent;
  };
  Tensor at(int64_t place, int64_t width) const;
  Tensor dropped() const;
  void project() const;
  // Calls body(shape with scores, the first head, how many) for the heads in turn.
  template <typename Body>
  void for_heads(const Heads& heads, const Body& body) const;

  const LayerPass& pass_;
  size_t shard_;
  float* weights_;
  RowsInUse rows_;
  Side sides_[2];  // for scores of queries and of keys; a side that is not used has 0 rows
};

}  // namespace finetune
