// The part of an arena that the owners of this host have (ownership.h): first or second moments. On
// a single host it is the whole arena, laid out as the table says.
#pragma once

#include <memory>

#include "train/gradient_sum.h"

namespace finetune {

class HostArena {
 public:
  // Collective on the host; zeroed.
  HostArena(Backend& backend, Communicator& comm, const Ownership& ownership)
      : dense_(ownership.host_dense(comm.host())),
        rows_(ownership.host_rows(comm.host())),
        cols_(ownership.cols()),
        memory_(allocate_for_host(
            backend, comm, size_t(dense_.size() + rows_.size() * cols_ + 16) * sizeof(float))) {}

  float* dense(int64_t element) const { return data() + element - dense_.begin; }
  float* row(int64_t row) const { return data() + dense_.size() + (row - rows_.begin) * cols_; }
  float* data() const { return static_cast<float*>(memory_.get()); }

 private:
  IndexRange dense_, rows_;
  int64_t cols_;
  std::shared_ptr<void> memory_;
};

}  // namespace finetune
