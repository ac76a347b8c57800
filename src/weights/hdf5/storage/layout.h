// A dataset's layout in the file: the layout message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"

namespace finetune::hdf5 {

struct Layout {
  enum class Kind { compact, contiguous };
  Kind kind = Kind::contiguous;
  std::string compact;            // the values themselves
  uint64_t address = kUndefined;  // of contiguous values
  uint64_t size = 0;              // contiguous: bytes; kUndefined: computed from the shape
};

// Fault: values in chunks, in other files or in other datasets, filters, and unknown layouts.
Layout read_layout(const std::vector<Message>& header, Widths widths);

}  // namespace finetune::hdf5
