// The module's view of a library's fused attention kernels (cuDNN's): plans and their inputs.
// cudnn_attention.cu makes plans on machines with cuDNN; no_cudnn.cu replaces it in builds without
// cuDNN's headers; tests have their own.
//
// The mathematics are those of ops/backend.h, in bf16 with fp32 inside, except dropout: a plan
// draws its own masks from (seed, offset), the same forward and backward.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace finetune::cuda {

// The properties that a plan is made for.
struct FusedShape {
  bool backward;              // gradients of q, k and v, from the forward plan's outputs
  int64_t sequences, length;  // upper bounds for all calls
  int64_t heads, head_size;
  int64_t q_stride, k_stride, v_stride, out_stride;  // elements between rows
  float scale;
  uint32_t threshold;  // of dropout, as in core/numeric/philox.h; 0: no dropout

  double dropped() const { return double(threshold) / 65536.0; }
  auto operator<=>(const FusedShape&) const = default;
};

// Device memory that a call provides. B = sequences; those beyond the call's own are empty.
enum class FusedTensor : int {
  q,  // bf16 rows, heads side by side, as in ops/backend.h
  k,
  v,
  out,
  stats,  // fp32 (rows of q, heads): log(sum(exp(score)))
  dout,   // bf16 with out's stride
  dq,     // bf16 with the strides of q, k and v
  dk,
  dv,
  deltas,         // fp32 (B, heads, length), scratch of the plan
  query_lengths,  // int32 (B)
  key_lengths,
  q_offsets,  // int32 (B+1): elements before each sequence's first
  k_offsets,
  v_offsets,
  out_offsets,
  stats_offsets,
  seed,  // int64
  offset,
  count
};
class FusedMemory {
 public:
  void*& operator[](FusedTensor t) { return memory_[size_t(t)]; }
  void* operator[](FusedTensor t) const { return memory_[size_t(t)]; }

 private:
  std::array<void*, size_t(FusedTensor::count)> memory_ = {};
};

class FusedPlan {
 public:
  virtual ~FusedPlan() = default;
  virtual size_t workspace() const = 0;  // bytes
  // Enqueues the plan on the stream, which may be captured. Workspace is 256-byte aligned,
  // everything else 16-byte.
  virtual void run(const FusedMemory& memory, void* workspace, cudaStream_t stream) = 0;
};

class FusedLibrary {
 public:
  virtual ~FusedLibrary() = default;
  virtual std::string name() const = 0;  // "cuDNN 9.19.0"
  // Takes about a second. Throws std::runtime_error if the library has no deterministic kernel.
  virtual std::unique_ptr<FusedPlan> plan(const FusedShape& shape) = 0;
};

// Opens the library for the current device. Throws std::runtime_error with the reason if that
// fails.
std::unique_ptr<FusedLibrary> open_fused_library();

}  // namespace finetune::cuda
