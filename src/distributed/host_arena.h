// The part of an optimizer arena (first or second moments) owned by this host's processes.
// Ownership is as in zero_partition.h; on a device it is this process's part only. With a single
// owner, or on the CPU with a single host, it is the whole arena in the table's layout; else the
// slices of its buckets, one behind the other.
#pragma once

#include <memory>
#include <vector>

#include "core/error.h"
#include "distributed/zero_partition.h"
#include "engine/host_memory.h"

namespace finetune {

class HostArena {
 public:
  // Collective on the host. The memory is zeroed.
  HostArena(Backend& backend, Communicator& comm, const ZeroPartition& partition)
      : rows_(backend.uses_host_memory() ? partition.host_rows(comm.host())
                                         : partition.rows_of(comm, comm.rank())),
        cols_(partition.cols()) {
    if (backend.uses_host_memory()) {
      slices_ = {partition.host_dense(comm.host())};
    } else {
      slices_ = partition.slices_of(comm, comm.rank());
    }
    for (IndexRange slice : slices_) dense_ += slice.size();
    memory_ = allocate_for_host(backend, comm,
                                size_t(dense_ + rows_.size() * cols_ + 16) * sizeof(float));
  }

  // Returns the address of an element; the following elements are valid up to the slice's end.
  float* dense(int64_t element) const {
    float* at = data();
    for (IndexRange slice : slices_) {
      if (element >= slice.begin && element < slice.end) return at + (element - slice.begin);
      at += slice.size();
    }
    throw internal_error("this host does not hold the requested element of the moments");
  }
  float* row(int64_t row) const { return data() + dense_ + (row - rows_.begin) * cols_; }
  float* data() const { return static_cast<float*>(memory_.get()); }

 private:
  std::vector<IndexRange> slices_;
  IndexRange rows_;
  int64_t dense_ = 0, cols_;
  std::shared_ptr<void> memory_;
};

}  // namespace finetune
