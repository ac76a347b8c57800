// Copies strided tensors of any element type to contiguous floats.
#include "weights/stored_tensor.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/threads/parallel.h"

namespace finetune {
namespace {

constexpr int64_t kGrain = int64_t{1} << 18;
constexpr int64_t kTile = 64;

template <typename T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Converts `count` adjacent elements.
void convert_run(DType dtype, const uint8_t* from, int64_t count, float* out) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(out, from, size_t(count) * 4);
      return;
    case DType::bf16:
      for (int64_t i = 0; i < count; ++i) {
        out[i] = std::bit_cast<float>(uint32_t(load<uint16_t>(from + 2 * i)) << 16);
      }
      return;
    case DType::f16:
      for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(load<uint16_t>(from + 2 * i));
      return;
    case DType::f64:
      for (int64_t i = 0; i < count; ++i) out[i] = float(load<double>(from + 8 * i));
      return;
    case DType::i32:
      for (int64_t i = 0; i < count; ++i) out[i] = float(load<int32_t>(from + 4 * i));
      return;
    case DType::i64:
      for (int64_t i = 0; i < count; ++i) out[i] = float(load<int64_t>(from + 8 * i));
      return;
    case DType::u8:
      for (int64_t i = 0; i < count; ++i) out[i] = float(from[i]);
      return;
  }
}

// Copies a matrix whose columns are contiguous in the file, tile by tile.
void copy_transposed(const StoredTensor& tensor, float* out) {
  const int64_t rows = tensor.shape[0], cols = tensor.shape[1], stride = tensor.strides[1];
  const int64_t size = int64_t(size_of(tensor.dtype));
  parallel_ranges(rows, kTile, [&](int64_t row_begin, int64_t row_end) {
    float tile[kTile][kTile];
    for (int64_t col = 0; col < cols; col += kTile) {
      int64_t width = std::min(kTile, cols - col);
      for (int64_t c = 0; c < width; ++c) {
        convert_run(tensor.dtype, tensor.data + ((col + c) * stride + row_begin) * size,
                    row_end - row_begin, tile[c]);
      }
      for (int64_t r = row_begin; r < row_end; ++r) {
        for (int64_t c = 0; c < width; ++c) out[r * cols + col + c] = tile[c][r - row_begin];
      }
    }
  });
}

void copy_strided(const StoredTensor& tensor, int64_t count, float* out) {
  const size_t rank = tensor.shape.size();
  const int64_t size = int64_t(size_of(tensor.dtype));
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, element = 0;
      for (size_t d = rank; d-- > 0;) {
        element += rest % tensor.shape[d] * tensor.strides[d];
        rest /= tensor.shape[d];
      }
      convert_run(tensor.dtype, tensor.data + element * size, 1, out + i);
    }
  });
}

// Whether elements are row-major without gaps. The stride of a dimension of size 1 is irrelevant.
bool contiguous(const StoredTensor& tensor) {
  int64_t expected = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

}  // namespace

std::optional<int64_t> element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool is_empty = false;
  for (int64_t dimension : shape) {
    is_empty = is_empty || dimension == 0;
    // Strides are also products of dimensions. Counting 0 as 1 keeps their overflow visible.
    const int64_t factor = std::max<int64_t>(dimension, 1);
    if (dimension < 0 || __builtin_mul_overflow(count, factor, &count)) return std::nullopt;
  }
  return is_empty ? 0 : count;
}

size_t bytes_spanned(const StoredTensor& tensor) {
  if (element_count(tensor.shape).value_or(0) == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    last += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return size_t(last + 1) * size_of(tensor.dtype);
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d) text += concat(d ? ", " : "", shape[d]);
  return text + ")";
}

void copy_as_float(const StoredTensor& tensor, float* out) {
  const int64_t count = element_count(tensor.shape).value_or(0);
  if (count == 0) return;
  const int64_t size = int64_t(size_of(tensor.dtype));
  if (contiguous(tensor)) {
    parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
      convert_run(tensor.dtype, tensor.data + begin * size, end - begin, out + begin);
    });
  } else if (tensor.shape.size() == 2 && tensor.strides[0] == 1) {
    copy_transposed(tensor, out);
  } else {
    copy_strided(tensor, count, out);
  }
}

int64_t slab_rows(const std::vector<int64_t>& shape) {
  constexpr int64_t kSlabFloats = int64_t{1} << 22;
  int64_t floats = 1;
  for (size_t d = 1; d < shape.size(); ++d) floats *= shape[d];
  return std::max<int64_t>(1, kSlabFloats / std::max<int64_t>(floats, 1));
}

}  // namespace finetune
