// The CPU backend: matrix products (gemm.h, bf16_gemm.h) and, for all else, vector kernels
// compiled for AVX2 and AVX-512 and chosen at run time (isa.h). One file an operation or a small
// family of them.
#pragma once

#include <vector>

#include "ops/backend.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/gemm/packed_weights.h"
#include "ops/cpu/kernels/optimizer.h"
#include "ops/posted.h"

namespace finetune {

class CpuBackend : public Backend {
 public:
  // compute: f32, or bf16 for the operands of matrix products and for activations; sums,
  // normalisation and parameters are fp32 in both
  explicit CpuBackend(DType compute);
  std::string description() const override;
  std::string code_path() const override;
  DType compute_type() const override { return compute_; }
  DType activation_type() const override { return compute_; }

  std::shared_ptr<void> allocate(size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void post(const void* from, size_t bytes) override { posted_.post(from, bytes); }
  void collect(void* host, size_t bytes) override { posted_.collect(host, bytes); }
  void fill_zero(Tensor x) override;
  void synchronize() override {}
  void forget_packed() override { packed_.forget(); }

  // linear.cpp
  void linear(Tensor x, Tensor w, Tensor bias, Tensor y) override;
  void linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) override;
  void linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                              bool accumulate) override;

  // activation.cpp
  void activation(Activation f, Tensor x, Tensor y) override;
  void activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y) override;

  // elementwise.cpp
  void dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) override;
  void add(Tensor x, Tensor y) override;
  void gather_rows(Tensor x, const int32_t* index, Tensor y) override;
  void scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) override;
  void scatter_rows(Tensor x, const int32_t* index, Tensor y) override;

  // embedding.cpp
  void embed(const int32_t* ids, const uint32_t* positions, const int32_t* types, Tensor word,
             Tensor position, Tensor type, Tensor y) override;
  void embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                      const int32_t* types, const int32_t* order, Tensor dword, Tensor dposition,
                      Tensor dtype) override;

  // layer_norm.cpp
  void add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names, Tensor gamma,
                      Tensor beta, float epsilon, Tensor s, Tensor stats, Tensor y,
                      Tensor rounded) override;
  void add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma, Dropout dropout,
                               RowNames names, Tensor ds, Tensor dx, Tensor dgamma, Tensor dbeta,
                               bool accumulate) override;

  // attention.cpp, attention_backward.cpp
  void attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k, Tensor v,
                 Tensor out, Tensor lse) override;
  void attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                          Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor dq, Tensor dk,
                          Tensor dv) override;

  // layer.cpp
  bool has_layer(const LayerShape& shape) const override;
  void self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                      Tensor bias, Tensor context) override;
  void layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y) override;

  // loss.cpp
  void cross_entropy(Tensor logits, const int32_t* labels, Tensor weights, float smoothing,
                     LossScale scale, Tensor losses, Tensor dlogits) override;
  void binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights, LossScale scale,
                            Tensor losses, Tensor dlogits) override;
  void squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                     Tensor dlogits) override;
  void span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                          const int32_t* ends, LossScale scale, Tensor losses,
                          Tensor dlogits) override;

  // optimizer.cpp
  void merge(std::span<const Addition> additions, int64_t count) override;
  void merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) override;
  void block_square_sums(Tensor x, int64_t block, const SparseRows& sparse, double* sums) override;
  void add_losses(Tensor losses, bool accumulate, double* sum) override;
  void step_outcome(const StepSums& sums, StepOutcome* outcome) override;
  void adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m, Tensor v) override;
  void adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient, Tensor m,
                   Tensor v) override;
  void adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient, Tensor m,
                  Tensor v) override;
  void adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                      Tensor parameter, Tensor m, Tensor v) override;

 private:
  void product(const cpu::Product& product);

  DType compute_;
  Posted posted_;
  cpu::PackedWeights packed_;
  std::vector<cpu::UpdatedPart> updated_parts_;  // of adamw_parts, kept for its memory
  std::vector<cpu::AdamWFactors> missed_steps_;  // of adamw_catch_up, kept for its memory
};

}  // namespace finetune
