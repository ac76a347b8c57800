// Copies of chosen matrix rows between a device and the host, packed on the way.
// Most rows of the word embedding stay where they are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/touched_rows.h"

namespace finetune {

class RowTransfer {
 public:
  // For matrices (rows, cols), contiguous.
  RowTransfer(Backend& backend, int64_t rows, int64_t cols);

  // The touched rows within `rows`, from the backend's matrix to their places in the host's, the
  // other way, or set to zero in the backend's.
  void download(const TouchedRows& touched, IndexRange rows, float* device, float* host);
  void upload(const TouchedRows& touched, IndexRange rows, const float* host, float* device);
  void clear(const TouchedRows& touched, IndexRange rows, float* device);

 private:
  // visit(numbers, the same in the backend's memory, packed rows there), piece by piece.
  template <typename Visit>
  void each_piece(const TouchedRows& touched, IndexRange rows, Visit&& visit);

  Backend& backend_;
  int64_t rows_, cols_, most_rows_;  // at most so many are packed at once
  std::shared_ptr<void> packed_;     // (most_rows, cols), the backend's
  std::vector<float> host_packed_;   // the same
};

}  // namespace finetune
