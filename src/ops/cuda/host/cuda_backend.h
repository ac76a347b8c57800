// The CUDA backend. Made for bf16 it takes activations in bf16 and rounds what else is an operand
// of matrix products. It checks shapes and calls the functions of finetune_cuda.so (cuda/api.h);
// all that runs on the GPU is in cuda/*.cu.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/cuda/module/api.h"

namespace finetune {

// Backend of the GPU for this host's process number `local_rank`: the processes take those that
// they see in turn, and share them where they are more. Null where no GPU can be used; `problem`
// then says why.
std::unique_ptr<Backend> make_cuda_backend(DType compute, std::string* problem = nullptr,
                                           int local_rank = 0);

class CudaBackend : public Backend {
 public:
  // `functions` live as long as the program.
  CudaBackend(const cuda::Functions& functions, DType compute, int device);
  std::string description() const override;
  DType compute_type() const override { return compute_; }
  DType activation_type() const override { return compute_; }
  bool library_attention() const override;

  std::shared_ptr<void> allocate(size_t bytes) override;
  bool uses_host_memory() const override { return false; }
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void post(const void* from, size_t bytes) override;
  void collect(void* host, size_t bytes) override;
  void replay(std::span<const int64_t> key, const std::function<void()>& work) override;
  bool replays() const override { return true; }
  void fill_zero(Tensor x) override;
  void synchronize() override;
  DeviceMemory device_memory() const override;

  std::string device_id() const override;
  PeerId make_peer_id() override;
  std::unique_ptr<DevicePeers> connect_peers(const PeerId& id, int rank, int size,
                                             double seconds) override;

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
  void adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient, Tensor m,
                   Tensor v) override;
  void adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient, Tensor m,
                  Tensor v) override;
  void adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                      Tensor parameter, Tensor m, Tensor v) override;

 private:
  class Connected;                      // its DevicePeers
  cuda::AnyMatrix any(Tensor x) const;  // f32 or, made for bf16, bf16
  // Calls a function of the table; Error(device) with the operation's name if it fails.
  template <typename Function, typename... Arguments>
  void call(const char* operation, Function function, const Arguments&... arguments) const {
    const int status = function(context_.get(), arguments...);
    if (status != cuda::kDone) fail(operation, status);
  }
  [[noreturn]] void fail(const char* operation, int status) const;

  const cuda::Functions& functions_;
  DType compute_;
  std::shared_ptr<cuda::Context> context_;  // memory from allocate() holds it too
  std::vector<cuda::AdamWStep> steps_;      // of adamw_catch_up, kept for its memory
  std::vector<cuda::AdamWPart> parts_;      // of adamw_parts
};

}  // namespace finetune
