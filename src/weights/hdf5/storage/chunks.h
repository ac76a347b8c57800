// Where the chunks of a dataset lie.
#pragma once

#include <cstdint>
#include <vector>

#include "weights/hdf5/storage/layout.h"
#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

struct Chunk {
  uint64_t position = 0;  // in the file
  uint64_t size = 0;      // as stored
  uint32_t skipped = 0;   // filters that it did not go through, one bit each
};

// How many chunks each dimension has.
std::vector<int64_t> chunk_counts(const std::vector<int64_t>& shape,
                                  const std::vector<int64_t>& chunk_shape);

// All of them in row-major order. Fault: one is missing, or claims more than it can hold.
std::vector<Chunk> read_chunks(Bytes& bytes, const Layout& layout, const Space& space);

}  // namespace finetune::hdf5
