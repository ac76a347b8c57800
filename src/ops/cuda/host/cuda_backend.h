// The CUDA backend. For bf16 it takes activations in bf16 and rounds the other operands of matrix
// products. It checks shapes and calls the functions of finetune_cuda.so (cuda/module/api.h); all
// GPU code is in *.cu.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/cuda/module/api.h"

namespace finetune {

// Returns the backend for this host's process `local_rank`. Processes take the visible GPUs in
// turn, and share them if there are more processes. Returns null if no GPU can be used; `problem`
// then says why.
std::unique_ptr<Backend> make_cuda_backend(DType compute, std::string* problem = nullptr,
                                           int local_rank = 0);
// From now on local rank 0 takes GPU `first` (modulo the number of GPUs), rank 1 the next, and so
// on: for independent programs on one host.
void take_gpus_from(int first);

class CudaBackend : public Backend {
 public:
  // `functions` must live as long as the program.
  CudaBackend(const cuda::Functions& functions, DType compute, int device);
  std::string description() const override;
  DType compute_type() const override { return compute_; }
  DType activation_type() const override { return compute_; }
  bool library_attention() const override;
  bool keeps_attention_masks() const override;
  bool sums_columns() const override;

  std::shared_ptr<void> allocate(size_t bytes) override;
  bool uses_host_memory() const override { return false; }
  std::shared_ptr<void> allocate_on_host(size_t bytes) override;
  std::unique_ptr<HostCopies> make_host_copies(int numbers) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void start_download(const void* from, size_t bytes) override;
  void finish_download(void* host, size_t bytes) override;
  void replay(std::span<const int64_t> key, const std::function<void()>& work) override;
  bool replays() const override { return true; }
  bool has_second_stream() const override;
  void reserve_second_stream(const SecondStreamLimits& most) override;
  void reserve_scratch(const ScratchSizes& sizes) override;
  void fill_zero(Tensor x) override;
  void synchronize() override;
  DeviceMemory device_memory() const override;

  std::string device_id() const override;
  PeerId make_peer_id() override;
  std::unique_ptr<DevicePeers> connect_peers(const PeerId& id, int rank, int size,
                                             double seconds) override;

  // All operations of ops/operations.inc.
#define OPERATION(name, parameters, arguments) void name parameters override;
#include "ops/operations.inc"

 private:
  class Connected;  // its DevicePeers
  class Copies;     // its HostCopies
  // Converts an argument for the table: a tensor to f32 or bf16; other types unchanged.
  template <typename To, typename From>
  To crossed(const From& argument) const {
    return argument;
  }
  template <typename To>
  To crossed(Tensor x) const {
    if constexpr (std::is_same_v<To, cuda::AnyMatrix>) {
      const bool bf16 = x.dtype == DType::bf16;
      FINETUNE_CHECK(bf16 ? compute_ == DType::bf16 : x.dtype == DType::f32);
      return {x.data, x.rows, x.cols, x.stride, bf16};
    } else {
      if (!x) return {};
      return {x.as<std::remove_pointer_t<decltype(To::data)>>(), x.rows, x.cols, x.stride};
    }
  }
  // Calls a function of the table; Error(device) with the operation's name on failure.
  template <typename... Parameters, typename... Arguments>
  void call(const char* operation, int (*function)(cuda::Context*, Parameters...),
            const Arguments&... arguments) const {
    const int status = function(context_.get(), crossed<Parameters>(arguments)...);
    if (status != cuda::kDone) fail(operation, status);
  }
  [[noreturn]] void fail(const char* operation, int status) const;

  const cuda::Functions& functions_;
  DType compute_;
  std::shared_ptr<cuda::Context> context_;  // memory from allocate() holds it too
  std::vector<cuda::AdamWStep> steps_;      // of adamw_catch_up; a member to reuse its memory
  std::vector<cuda::AdamWPart> parts_;      // of adamw_parts
};

}  // namespace finetune
