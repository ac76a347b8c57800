// A dataset: the type and shape of its elements, and their place in the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"
#include "weights/hdf5/types.h"

namespace finetune::hdf5 {

// A dataset's layout in the file: the layout message.
struct Layout {
  enum class Kind { compact, contiguous };
  Kind kind = Kind::contiguous;
  std::string compact;            // compact: the values themselves
  uint64_t address = kUndefined;  // contiguous: where the values begin
  uint64_t size = 0;              // contiguous: bytes; kUndefined: computed from the shape
};

// Fault: values in chunks, in other files or in other datasets, filters, and unknown layouts.
Layout read_layout(const std::vector<Message>& header, Widths widths);

struct Dataset {
  std::string path;
  Type type;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;   // size of all elements
  uint64_t stored = 0;  // bytes stored in the file
  Layout layout;
  uint64_t position = 0;  // file offset of contiguous values
};

// Reads a dataset's description. Fault: not a dataset, damaged, external values, or more values
// than the file can hold. The caller adds the path to a Fault.
Dataset read_dataset(Bytes& bytes, const std::vector<Message>& header);

// Reads bytes [offset, offset + size) of the values, as stored.
void read_stored(const Bytes& bytes, const Dataset& dataset, uint64_t offset, uint64_t size,
                 void* out);

// Reads all elements of a numeric dataset, row-major.
void read_floats(const Bytes& bytes, const Dataset& dataset, float* out);

}  // namespace finetune::hdf5
