// The places of a dataset's chunks in the file.
#pragma once

#include <cstdint>
#include <vector>

#include "weights/hdf5/storage/layout.h"
#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

struct Chunk {
  uint64_t position = 0;  // in the file
  uint64_t size = 0;      // as stored
  uint32_t skipped = 0;   // bit mask of filters that were not applied
};

// The number of chunks in each dimension.
std::vector<int64_t> chunk_counts(const std::vector<int64_t>& shape,
                                  const std::vector<int64_t>& chunk_shape);

// Returns all chunks in row-major order. Fault: one is missing, or is larger than the file allows.
std::vector<Chunk> read_chunks(Bytes& bytes, const Layout& layout, const Space& space);

}  // namespace finetune::hdf5
