// A view of a matrix in a backend's memory, without ownership.
#pragma once

#include <type_traits>

#include "core/error.h"
#include "core/numeric/dtype.h"

namespace finetune {

// `rows` x `cols`, row-major, consecutive rows `stride` elements apart (stride >= cols).
// A vector of n elements is 1 x n. An empty view (data == nullptr) means "absent".
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  explicit operator bool() const { return data != nullptr; }
  int64_t size() const { return rows * cols; }
  bool contiguous() const { return stride == cols; }

  template <typename T>  // float or bfloat16
  T* as() const {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, bfloat16>);
    FINETUNE_CHECK(dtype == (std::is_same_v<T, float> ? DType::f32 : DType::bf16));
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  // Columns [begin, begin + count) of every row.
  Tensor columns(int64_t begin, int64_t count) const {
    FINETUNE_CHECK(begin >= 0 && count >= 0 && begin + count <= cols);
    return {static_cast<char*>(data) + size_t(begin) * size_of(dtype), dtype, rows, count, stride};
  }
  Tensor rows_from(int64_t begin, int64_t count) const {
    FINETUNE_CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    return {static_cast<char*>(data) + size_t(begin * stride) * size_of(dtype), dtype, count, cols,
            stride};
  }
};

inline Tensor matrix(float* data, int64_t rows, int64_t cols) {
  return {data, DType::f32, rows, cols, cols};
}
inline Tensor vector(float* data, int64_t count) {
  return {data, DType::f32, 1, count, count};
}
inline Tensor vector(const float* data, int64_t count) {
  return vector(const_cast<float*>(data), count);
}
inline Tensor matrix(const float* data, int64_t rows, int64_t cols) {
  return matrix(const_cast<float*>(data), rows, cols);
}

}  // namespace finetune
