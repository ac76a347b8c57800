// Collects the word embedding rows of a global batch, sorted without duplicates.
#include "distributed/touched_rows.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace finetune {

TouchedRows::TouchedRows(Backend& backend, int64_t rows)
    : backend_(backend),
      is_touched_(size_t(rows), false),
      device_(backend.allocate(size_t(rows) * sizeof(int32_t))) {
  rows_.reserve(size_t(rows));
}

void TouchedRows::clear() {
  for (int32_t row : rows_) is_touched_[size_t(row)] = false;
  rows_.clear();
}

void TouchedRows::add(std::span<const int32_t> ids) {
  for (int32_t row : ids) {
    FINETUNE_CHECK(row >= 0 && size_t(row) < is_touched_.size());
    if (is_touched_[size_t(row)]) continue;
    is_touched_[size_t(row)] = true;
    rows_.push_back(row);
  }
}

void TouchedRows::add_all() {
  rows_.resize(is_touched_.size());
  std::iota(rows_.begin(), rows_.end(), 0);
  is_touched_.assign(is_touched_.size(), true);
}

void TouchedRows::complete() {
  std::sort(rows_.begin(), rows_.end());
  backend_.upload(device_.get(), rows_.data(), rows_.size() * sizeof(int32_t));
}

std::span<const int32_t> TouchedRows::within(IndexRange rows) const {
  auto begin = std::lower_bound(rows_.begin(), rows_.end(), rows.begin);
  return {begin, std::lower_bound(begin, rows_.end(), rows.end)};
}

RowList TouchedRows::list(IndexRange rows) const {
  const RowList host = list_on_host(rows);
  const int64_t begin = host.rows - rows_.data();
  return {static_cast<const int32_t*>(device_.get()) + begin, host.count};
}

RowList TouchedRows::list_on_host(IndexRange rows) const {
  const std::span<const int32_t> found = within(rows);
  return {found.data(), int64_t(found.size())};
}

}  // namespace finetune
