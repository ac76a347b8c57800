// The part of an arena that the owners of this host have (ownership.h), or on a device this process
// alone: first or second moments. For a single owner, and on the CPU for a single host, it is the
// whole arena, laid out as the table says.
#pragma once

#include <memory>

#include "train/host_memory.h"
#include "train/ownership.h"

namespace finetune {

class HostArena {
 public:
  // Collective on the host; zeroed.
  HostArena(Backend& backend, Communicator& comm, const Ownership& ownership)
      : dense_(backend.uses_host_memory() ? ownership.host_dense(comm.host())
                                          : ownership.dense_of(comm)),
        rows_(backend.uses_host_memory() ? ownership.host_rows(comm.host())
                                         : ownership.rows_of(comm)),
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
