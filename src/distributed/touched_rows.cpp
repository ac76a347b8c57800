// Collects the word embedding rows of a global batch, sorted without duplicates.
#include "distributed/touched_rows.h"

#include <algorithm>
#include <cstring>
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

namespace {

constexpr int64_t kPieceFloats = int64_t{1} << 20;

}  // namespace

RowTransfer::RowTransfer(Backend& backend, int64_t rows, int64_t cols)
    : backend_(backend),
      rows_(rows),
      cols_(cols),
      most_rows_(std::min(rows, std::max<int64_t>(1, kPieceFloats / cols))),
      packed_(backend.allocate(size_t(most_rows_ * cols) * sizeof(float))),
      host_packed_(size_t(most_rows_ * cols)) {}

template <typename Visit>
void RowTransfer::each_piece(const TouchedRows& touched, IndexRange rows, Visit&& visit) {
  const std::span<const int32_t> numbers = touched.within(rows);
  const RowList list = touched.list(rows);
  for (int64_t begin = 0; begin < list.count; begin += most_rows_) {
    const int64_t count = std::min(most_rows_, list.count - begin);
    visit(numbers.subspan(size_t(begin), size_t(count)), list.rows + begin,
          matrix(static_cast<float*>(packed_.get()), count, cols_));
  }
}

void RowTransfer::download(const TouchedRows& touched, IndexRange rows, float* device,
                           float* host) {
  each_piece(
      touched, rows, [&](std::span<const int32_t> numbers, const int32_t* list, Tensor packed) {
        backend_.gather_rows(matrix(device, rows_, cols_), list, packed);
        backend_.download(host_packed_.data(), packed.data, size_t(packed.size()) * sizeof(float));
        const float* from = host_packed_.data();
        for (int32_t row : numbers) {
          std::memcpy(host + row * cols_, from, size_t(cols_) * sizeof(float));
          from += cols_;
        }
      });
}

void RowTransfer::upload(const TouchedRows& touched, IndexRange rows, const float* host,
                         float* device) {
  each_piece(
      touched, rows, [&](std::span<const int32_t> numbers, const int32_t* list, Tensor packed) {
        float* to = host_packed_.data();
        for (int32_t row : numbers) {
          std::memcpy(to, host + row * cols_, size_t(cols_) * sizeof(float));
          to += cols_;
        }
        backend_.upload(packed.data, host_packed_.data(), size_t(packed.size()) * sizeof(float));
        backend_.scatter_rows(packed, list, matrix(device, rows_, cols_));
      });
}

void RowTransfer::clear(const TouchedRows& touched, IndexRange rows, float* device) {
  each_piece(touched, rows, [&](std::span<const int32_t>, const int32_t* list, Tensor packed) {
    backend_.fill_zero(packed);
    backend_.scatter_rows(packed, list, matrix(device, rows_, cols_));
  });
}

}  // namespace finetune
