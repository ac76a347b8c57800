// The word embedding's rows that occur in a global batch, and copies of rows on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/plan.h"
#include "ops/backend.h"

namespace finetune {

// The rows in ascending order, in host memory and in the backend's.
class TouchedRows {
 public:
  TouchedRows(Backend& backend, int64_t rows);
  void clear();
  void add(std::span<const int32_t> ids);  // may be called repeatedly; duplicates are fine
  void add_all();
  void complete();  // sorts and uploads

  std::span<const int32_t> within(IndexRange rows) const;
  RowList list(IndexRange rows) const;          // in backend memory
  RowList list_on_host(IndexRange rows) const;  // the same rows in host memory

 private:
  Backend& backend_;
  std::vector<int32_t> rows_;
  std::vector<bool> is_touched_;
  std::shared_ptr<void> device_;
};

// Copies selected matrix rows between a device and the host, packed in transit. So most rows of the
// word embedding are not moved.
class RowTransfer {
 public:
  // For contiguous matrices of shape (rows, cols).
  RowTransfer(Backend& backend, int64_t rows, int64_t cols);

  // Copies the touched rows within `rows` from the backend's matrix to the host's, or back, or sets
  // them to zero in the backend's.
  void download(const TouchedRows& touched, IndexRange rows, float* device, float* host);
  void upload(const TouchedRows& touched, IndexRange rows, const float* host, float* device);
  void clear(const TouchedRows& touched, IndexRange rows, float* device);

 private:
  // Calls visit(row numbers, the same in backend memory, packed rows in backend memory) for each
  // piece.
  template <typename Visit>
  void each_piece(const TouchedRows& touched, IndexRange rows, Visit&& visit);

  Backend& backend_;
  int64_t rows_, cols_, most_rows_;  // most_rows_: packed at once
  std::shared_ptr<void> packed_;     // (most_rows, cols), in backend memory
  std::vector<float> host_packed_;   // the same on the host
};

// Copies inside a device's memory.
class DeviceCopy {
 public:
  // `backend` must outlive this.
  explicit DeviceCopy(Backend& backend)
      : backend_(backend), first_(backend.allocate(sizeof(int32_t))) {}  // allocated memory is zero

  // Copies in the backend's order; the ranges must not overlap.
  void operator()(float* from, float* to, int64_t floats) const {
    if (floats == 0) return;
    backend_.scatter_rows(vector(from, floats), static_cast<const int32_t*>(first_.get()),
                          vector(to, floats));
  }

 private:
  Backend& backend_;
  std::shared_ptr<void> first_;
};

}  // namespace finetune
