// The part of an optimizer arena (first or second moments) that this host's owners have.
// Owners are those of zero_partition.h; on a device it is this process's part alone. For a single
// owner, and on the CPU for a single host, it is the whole arena, laid out as the table says; else
// the slices of its buckets lie one behind the other.
#pragma once

#include <memory>
#include <vector>

#include "core/error.h"
#include "distributed/zero_partition.h"
#include "engine/host_memory.h"

namespace finetune {

class HostArena {
 public:
  // Collective on the host; zeroed.
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

  // Of an element that it has; those behind follow up to the slice's end.
  float* dense(int64_t element) const {
    float* at = data();
    for (IndexRange slice : slices_) {
      if (element >= slice.begin && element < slice.end) return at + (element - slice.begin);
      at += slice.size();
    }
    throw internal_error("an element of the moments that is not here");
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
