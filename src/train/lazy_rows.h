// Lazy updates of the word embedding: rows that a batch does not have are updated when needed.
// Most rows are such: their gradient is zero, and what AdamW does to them then (decay, and the
// moments dying away) can wait. Rows of the batch are updated in every step; all others remember up
// to which step they are, and catch up from a log of the steps' constants in one trip through
// memory: before a batch has them, before anybody looks at the weights (settle), and a part of all
// rows in every step, so that none falls behind by more than kMostMissed steps. The arithmetic of
// every row is that of eager updates in their order: same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/backend.h"

namespace finetune {

class LazyRows {
 public:
  static constexpr int64_t kMostMissed = 256;

  // Of a parameter and its moments, all (V, H) contiguous, with all rows up to date.
  LazyRows(Backend& backend, Tensor parameter, Tensor m, Tensor v);

  // A step: its rows are made known, by any number of calls, then brought up to date before the
  // forward pass; after the backward pass they are updated and their gradients zeroed.
  void begin_step();
  void need(std::span<const int32_t> rows);
  void catch_up();
  RowList needed() const;  // all that can have a gradient
  void update(const AdamW& options, Tensor gradient);

  // Brings all rows up to date.
  void settle();

 private:
  int64_t missed(int32_t row) const { return updates_ - updated_[size_t(row)]; }
  void catch_up(std::span<const int32_t> rows);
  int32_t* device(int64_t list) const;
  void forget_old_steps();

  Backend& backend_;
  Tensor parameter_, m_, v_;
  int64_t updates_ = 0;           // done so far
  std::vector<int64_t> updated_;  // of each row: how many of them it has
  std::vector<AdamW> log_;        // of the last updates
  bool settled_ = true;

  std::vector<int32_t> needed_;  // ascending
  std::vector<bool> is_needed_;
  std::vector<int32_t> behind_, behind_by_, all_;
  std::shared_ptr<void> lists_;  // (3, V) int32: needed rows, rows that catch up, by how much
};

}  // namespace finetune
