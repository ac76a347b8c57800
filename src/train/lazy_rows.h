// Lazy updates of the word embedding: rows that a batch does not use are updated when needed. Their
// gradient is zero, so what AdamW does to them (weight decay, decaying moments) can wait. The rows
// of the batch are updated in every step. For each row this class remembers its last update, and
// the row catches up from a log of the steps' constants in one pass over memory. A row catches up
// before a batch uses it and before the weights are read (settle). Each step also catches up a part
// of all rows, so that none falls behind by more than kMostMissed steps. The arithmetic of each row
// is that of eager updates in order: same bits.
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

  // A parameter and its moments, each (V, H) contiguous. All rows must be up to date.
  LazyRows(Backend& backend, Tensor parameter, Tensor m, Tensor v);

  // A step: begin_step(), need() for its rows in any number of calls, catch_up(), forward pass,
  // backward pass, update(), which also zeroes the gradients of these rows.
  void begin_step();
  void need(std::span<const int32_t> rows);
  void catch_up();
  RowList needed() const;  // all rows that can have a gradient
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
  int64_t updates_ = 0;           // of the parameter so far
  std::vector<int64_t> updated_;  // the value of updates_ that each row has reached
  std::vector<AdamW> log_;        // of the last updates
  bool settled_ = true;

  std::vector<int32_t> needed_;  // ascending
  std::vector<bool> is_needed_;
  std::vector<int32_t> behind_, behind_by_, all_;
  std::shared_ptr<void> lists_;  // (3, V) int32: needed rows, rows that catch up, by how much
};

}  // namespace finetune
