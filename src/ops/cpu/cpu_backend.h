// The CPU backend: matrix products, and vector kernels chosen at run time. Products are in gemm.h
// and bf16_gemm.h; other kernels are compiled for AVX2 and AVX-512 (isa.h). Each file holds one
// operation or a small family.
#pragma once

#include <vector>

#include "ops/backend.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/gemm/packed_weights.h"
#include "ops/cpu/kernels/optimizer.h"
#include "ops/queued_downloads.h"

namespace finetune {

class CpuBackend : public Backend {
 public:
  // compute: f32, or bf16 for the operands of matrix products and for activations; sums,
  // normalisation and parameters are fp32 in both cases
  explicit CpuBackend(DType compute);
  std::string description() const override;
  std::string code_path() const override;
  DType compute_type() const override { return compute_; }
  DType activation_type() const override { return compute_; }
  DType weight_type() const override { return compute_; }

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
  void forget_packed() override { packed_.forget(); }
  bool has_layer(const LayerShape& shape) const override;

  // All operations of ops/operations.inc.
#define OPERATION(name, parameters, arguments) void name parameters override;
#define LAYER_OPERATION OPERATION
#include "ops/operations.inc"

 private:
  void product(const cpu::Product& product);

  DType compute_;
  QueuedDownloads downloads_;
  cpu::PackedWeights packed_;
  std::vector<cpu::UpdatedPart> updated_parts_;  // of adamw_parts; a member to reuse its memory
  std::vector<cpu::AdamWFactors> missed_steps_;  // of adamw_catch_up; a member to reuse its memory
};

}  // namespace finetune
