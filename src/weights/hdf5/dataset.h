// A dataset: the type and shape of its elements, and where the file has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/storage/chunks.h"
#include "weights/hdf5/storage/layout.h"
#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

struct Dataset {
  std::string path;
  Type type;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;   // of all elements
  uint64_t stored = 0;  // of what the file has of them
  Layout layout;
  uint64_t position = 0;      // of contiguous values, in the file
  std::vector<Chunk> chunks;  // of chunked ones, in row-major order
};

// Without its path. Fault: no dataset, damaged, values that lie elsewhere, or more values than the
// file can have.
Dataset read_dataset(Bytes& bytes, const std::vector<Message>& header);

// Bytes [offset, offset + size) of values that are not in chunks.
void read_stored(const Bytes& bytes, const Dataset& dataset, uint64_t offset, uint64_t size,
                 void* out);

// All elements of a dataset of numbers, row-major.
void read_floats(const Bytes& bytes, const Dataset& dataset, float* out);

}  // namespace finetune::hdf5
