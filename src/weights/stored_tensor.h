// A tensor as stored in a file: the place, type and strides of its elements, and slabs of whole
// rows, the unit in which tensors are read and written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/numeric/dtype.h"

namespace finetune {

struct StoredTensor {
  std::string name;         // Hugging Face's name, if the file's reader derives it
  std::string stored_name;  // as in the file
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;    // in elements, one per dimension, >= 0
  const uint8_t* data = nullptr;   // element (0, 0, ...), little-endian, possibly unaligned
  std::optional<uint32_t> crc32c;  // masked checksum of the bytes, if the format has one
};

// Product of the dimensions; nothing if one is negative or the product exceeds int64.
std::optional<int64_t> element_count(const std::vector<int64_t>& shape);

// Bytes from the first element to the end of the last one; the caller has checked that they fit in
// the file.
size_t bytes_spanned(const StoredTensor& tensor);

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

// "(4000, 64)"
std::string shape_text(const std::vector<int64_t>& shape);

// Converts all elements to float, row-major, into `out`. Large tensors are converted in parallel.
void copy_as_float(const StoredTensor& tensor, float* out);

// The number of rows (first dimension) per slab for tensors of this shape.
int64_t slab_rows(const std::vector<int64_t>& shape);

// Calls visit(first row, number of rows) for each slab of such a tensor, in order.
template <typename Visit>
void each_slab(const std::vector<int64_t>& shape, Visit&& visit) {
  const int64_t rows = slab_rows(shape);
  for (int64_t first = 0; first < shape[0]; first += rows) {
    visit(first, std::min(rows, shape[0] - first));
  }
}

}  // namespace finetune
