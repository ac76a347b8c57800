// Copies selected matrix rows between a device and the host, packed in transit. So most rows of the
// word embedding are not moved.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/touched_rows.h"

namespace finetune {

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

}  // namespace finetune
