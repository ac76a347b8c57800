// A tensor as it lies in a file: where its elements are, their type and strides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/numeric/dtype.h"

namespace finetune {

struct StoredTensor {
  std::string name;         // Hugging Face's, as far as the format can say it
  std::string stored_name;  // as in the file
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;    // in elements, one per dimension, >= 0
  const uint8_t* data = nullptr;   // element (0, 0, ...), little-endian, of any alignment
  std::optional<uint32_t> crc32c;  // masked checksum of the bytes, where the format has one
};

// Product of the dimensions; nothing if one is negative or the product exceeds int64.
std::optional<int64_t> element_count(const std::vector<int64_t>& shape);

// From the first byte of the first element to behind the last element's; its fit into the file has
// been checked.
size_t bytes_spanned(const StoredTensor& tensor);

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

// "(4000, 64)"
std::string shape_text(const std::vector<int64_t>& shape);

// Converts every element to float, row-major, into `out`. In parallel where the tensor is large.
void copy_as_float(const StoredTensor& tensor, float* out);

}  // namespace finetune
