// The reference backend: defines every operation of ops/backend.h as plain loops. For tests: data
// are floats in host memory, all arithmetic is double, and each result is rounded to float once.
// Single-threaded.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/queued_downloads.h"

namespace finetune {

class ReferenceBackend : public Backend {
 public:
  std::string description() const override { return "reference, double precision"; }
  DType compute_type() const override { return DType::f64; }

  std::shared_ptr<void> allocate(size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void start_download(const void* from, size_t bytes) override {
    downloads_.start_download(from, bytes);
  }
  void finish_download(void* host, size_t bytes) override {
    downloads_.finish_download(host, bytes);
  }
  void fill_zero(Tensor x) override;
  void synchronize() override {}

  // All operations of ops/operations.inc.
#define OPERATION(name, parameters, arguments) void name parameters override;
#define LAYER_OPERATION OPERATION
#include "ops/operations.inc"

 private:
  QueuedDownloads downloads_;
};

namespace reference {

// One element of an f32 or bf16 tensor: reads as float, rounds on assignment.
class Element {
 public:
  Element(const Tensor& t, int64_t index)
      : data_(static_cast<char*>(t.data) + size_t(index) * size_of(t.dtype)),
        bf16_(t.dtype == DType::bf16) {
    FINETUNE_CHECK(bf16_ || t.dtype == DType::f32);
  }
  operator float() const {
    return bf16_ ? float(*static_cast<bfloat16*>(data_)) : *static_cast<float*>(data_);
  }
  Element& operator=(float value) {
    if (bf16_) {
      *static_cast<bfloat16*>(data_) = bfloat16(value);
    } else {
      *static_cast<float*>(data_) = value;
    }
    return *this;
  }
  Element(const Element&) = default;
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): it owns no memory.
  Element& operator=(const Element& other) { return *this = float(other); }

 private:
  void* data_;
  bool bf16_;
};

inline Element at(const Tensor& t, int64_t row, int64_t col) {
  return {t, row * t.stride + col};
}

// The values as (rows, cols) without gaps, for loops that would otherwise spend most of their time
// checking the type of each element.
inline std::vector<float> values_of(const Tensor& t) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(t.rows * t.cols));
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) values.push_back(at(t, r, c));
  }
  return values;
}

inline void check_shape(Tensor t, int64_t rows, int64_t cols) {
  FINETUNE_CHECK(t && t.rows == rows && t.cols == cols && t.stride >= t.cols);
}

// mask / (1 - p) of one element: 0 or dropout.scale.
inline double mask(const Dropout& dropout, uint32_t row, uint32_t sample, int64_t element) {
  if (!dropout.on()) return 1.0;
  uint32_t bits = dropout_bits(dropout.key, row, sample, dropout.step, uint32_t(element));
  return bits >= dropout.threshold ? double(dropout.scale) : 0.0;
}

// The mask of element `col` of row `row`, with the tensor's row names.
inline double mask(const Dropout& dropout, const RowNames& names, int64_t row, int64_t col) {
  if (!dropout.on()) return 1.0;
  return mask(dropout, names.position[row], names.sample[row], col);
}

}  // namespace reference
}  // namespace finetune
