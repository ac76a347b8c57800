// Tracks each word row's last update, and catches rows up when they are needed.
#include "train/lazy_rows.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace finetune {

LazyRows::LazyRows(Backend& backend, Tensor parameter, Tensor m, Tensor v)
    : backend_(backend),
      parameter_(parameter),
      m_(m),
      v_(v),
      updated_(size_t(parameter.rows), 0),
      is_needed_(size_t(parameter.rows), false),
      all_(size_t(parameter.rows)),
      lists_(backend.allocate(size_t(3 * parameter.rows) * sizeof(int32_t))) {
  std::iota(all_.begin(), all_.end(), 0);
  log_.reserve(size_t(2 * kMostMissed));
  for (auto* rows : {&needed_, &behind_, &behind_by_}) rows->reserve(all_.size());
}

int32_t* LazyRows::device(int64_t list) const {
  return static_cast<int32_t*>(lists_.get()) + list * parameter_.rows;
}

void LazyRows::begin_step() {
  for (int32_t row : needed_) is_needed_[size_t(row)] = false;
  needed_.clear();
}

void LazyRows::need(std::span<const int32_t> rows) {
  for (int32_t row : rows) {
    FINETUNE_CHECK(row >= 0 && row < parameter_.rows);
    if (is_needed_[size_t(row)]) continue;
    is_needed_[size_t(row)] = true;
    needed_.push_back(row);
  }
}

void LazyRows::catch_up() {
  std::sort(needed_.begin(), needed_.end());
  backend_.upload(device(0), needed_.data(), needed_.size() * sizeof(int32_t));
  catch_up(needed_);
  const int64_t turn = updates_ % kMostMissed;
  const int64_t begin = parameter_.rows * turn / kMostMissed;
  const int64_t end = parameter_.rows * (turn + 1) / kMostMissed;
  catch_up(std::span(all_).subspan(size_t(begin), size_t(end - begin)));
}

RowList LazyRows::needed() const {
  return {device(0), int64_t(needed_.size())};
}

void LazyRows::catch_up(std::span<const int32_t> rows) {
  behind_.clear();
  behind_by_.clear();
  int64_t most = 0;
  for (int32_t row : rows) {
    if (missed(row) == 0) continue;
    behind_.push_back(row);
    behind_by_.push_back(int32_t(missed(row)));
    most = std::max(most, missed(row));
    updated_[size_t(row)] = updates_;
  }
  if (behind_.empty()) return;
  const size_t bytes = behind_.size() * sizeof(int32_t);
  backend_.upload(device(1), behind_.data(), bytes);
  backend_.upload(device(2), behind_by_.data(), bytes);
  backend_.adamw_catch_up(std::span(log_).last(size_t(most)), {device(1), int64_t(behind_.size())},
                          device(2), parameter_, m_, v_);
}

void LazyRows::forget_old_steps() {
  if (log_.size() < size_t(2 * kMostMissed)) return;
  log_.erase(log_.begin(), log_.end() - kMostMissed);
}

void LazyRows::update(const AdamW& options, Tensor gradient) {
  backend_.adamw_rows(options, needed(), parameter_, gradient, m_, v_);
  forget_old_steps();
  log_.push_back(options);
  log_.back().outcome = nullptr;  // only this step could read it
  updates_ += 1;
  for (int32_t row : needed_) updated_[size_t(row)] = updates_;
  settled_ = false;
}

void LazyRows::settle() {
  if (settled_) return;
  catch_up(all_);
  log_.clear();
  settled_ = true;
}

}  // namespace finetune
