// A dataset's layout in the file: the layout and filter messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"
#include "weights/hdf5/storage/filters.h"

namespace finetune::hdf5 {

enum class ChunkIndex { tree, single, fixed_array };

struct Layout {
  enum class Kind { compact, contiguous, chunked };
  Kind kind = Kind::contiguous;
  std::string compact;            // the values themselves
  uint64_t address = kUndefined;  // of the values, or of the chunk index
  uint64_t size = 0;              // contiguous: bytes; kUndefined: computed from the shape
  // For chunks:
  ChunkIndex index = ChunkIndex::tree;
  std::vector<int64_t> chunk_shape;
  uint64_t element_size = 0;
  std::vector<Filter> filters;
  uint64_t single_size = kUndefined;  // stored bytes of a single filtered chunk
  uint32_t single_skipped = 0;        // filters that were not applied to it
};

// Fault: values in other files or datasets, and unknown layouts.
Layout read_layout(const std::vector<Message>& header, Widths widths);

}  // namespace finetune::hdf5
