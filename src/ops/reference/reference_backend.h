// The definition of every operation of ops/backend.h as plain loops, for tests: data are floats in
// host memory, all arithmetic is double, and a result is rounded to float once. No threads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/posted.h"

namespace finetune {

class ReferenceBackend : public Backend {
 public:
  std::string description() const override { return "reference, double precision"; }
  DType compute_type() const override { return DType::f64; }

  std::shared_ptr<void> allocate(size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void post(const void* from, size_t bytes) override { posted_.post(from, bytes); }
  void collect(void* host, size_t bytes) override { posted_.collect(host, bytes); }
  void fill_zero(Tensor x) override;
  void synchronize() override {}

  void linear(Tensor x, Tensor w, Tensor bias, Tensor y) override;
  void linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) override;
  void linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                              bool accumulate) override;

  void activation(Activation f, Tensor x, Tensor y) override;
  void activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y) override;
  void dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) override;
  void add(Tensor x, Tensor y) override;

  void gather_rows(Tensor x, const int32_t* index, Tensor y) override;
  void scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) override;
  void scatter_rows(Tensor x, const int32_t* index, Tensor y) override;

  void embed(const int32_t* ids, const uint32_t* positions, const int32_t* types, Tensor word,
             Tensor position, Tensor type, Tensor y) override;
  void embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                      const int32_t* types, const int32_t* order, Tensor dword, Tensor dposition,
                      Tensor dtype) override;

  void add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names, Tensor gamma,
                      Tensor beta, float epsilon, Tensor s, Tensor stats, Tensor y,
                      Tensor rounded) override;
  void add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma, Dropout dropout,
                               RowNames names, Tensor ds, Tensor dx, Tensor dgamma, Tensor dbeta,
                               bool accumulate) override;

  void attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k, Tensor v,
                 Tensor out, Tensor lse) override;
  void attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                          Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor dq, Tensor dk,
                          Tensor dv) override;

  void self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                      Tensor bias, Tensor context) override;
  void layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y) override;

  void cross_entropy(Tensor logits, const int32_t* labels, Tensor weights, float smoothing,
                     LossScale scale, Tensor losses, Tensor dlogits) override;
  void binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights, LossScale scale,
                            Tensor losses, Tensor dlogits) override;
  void squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                     Tensor dlogits) override;
  void span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                          const int32_t* ends, LossScale scale, Tensor losses,
                          Tensor dlogits) override;

  void merge(std::span<const Addition> additions, int64_t count) override;
  void merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) override;
  void block_square_sums(Tensor x, int64_t block, const SparseRows& sparse, double* sums) override;
  void add_losses(Tensor losses, bool accumulate, double* sum) override;
  void step_outcome(const StepSums& sums, StepOutcome* outcome) override;
  void adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m, Tensor v) override;
  void adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient, Tensor m,
                  Tensor v) override;
  void adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                      Tensor parameter, Tensor m, Tensor v) override;

 private:
  Posted posted_;
};

namespace reference {

// One element of an f32 or bf16 tensor: reads as float, rounds what is assigned.
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
  Element& operator=(const Element& other) { return *this = float(other); }

 private:
  void* data_;
  bool bf16_;
};

inline Element at(const Tensor& t, int64_t row, int64_t col) {
  return {t, row * t.stride + col};
}

// (rows, cols) without gaps, for loops in which looking at the type of each element took most of
// the time.
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

// The mask of element `col` of row `row` of a tensor whose rows have names.
inline double mask(const Dropout& dropout, const RowNames& names, int64_t row, int64_t col) {
  if (!dropout.on()) return 1.0;
  return mask(dropout, names.position[row], names.sample[row], col);
}

}  // namespace reference
}  // namespace finetune
