// Attention of whole sequences by a library's own fused kernels (cuDNN's), as the module sees it:
// what a plan computes, and what a call gives it. cudnn_attention.cu makes plans on a machine that
// has cuDNN, no_cudnn.cu stands there in a build without its headers, and tests have their own.
//
// Mathematics as ops/backend.h has it, in bf16 with fp32 inside, but for dropout: a plan draws
// masks of its own from (seed, offset), the same forwards and backwards.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace finetune::cuda {

// What a plan is made for.
struct FusedShape {
  bool backward;              // gradients of q, k and v, from what the forward plan writes
  int64_t sequences, length;  // no call has more sequences, or a longer one
  int64_t heads, head_size;
  int64_t q_stride, k_stride, v_stride, out_stride;  // elements from row to row
  float scale;
  uint32_t threshold;  // of dropout, as in core/numeric/philox.h; 0: none

  double dropped() const { return double(threshold) / 65536.0; }
  auto operator<=>(const FusedShape&) const = default;
};

// What a call gives: device memory. B = sequences; those behind the call's own are empty.
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
  deltas,         // fp32 (B, heads, length), the plan's own
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
  // Puts it on the stream, which may be captured. 256-byte aligned workspace, 16-byte all else.
  virtual void run(const FusedMemory& memory, void* workspace, cudaStream_t stream) = 0;
};

class FusedLibrary {
 public:
  virtual ~FusedLibrary() = default;
  virtual std::string name() const = 0;  // "cuDNN 9.19.0"
  // Takes a second or so. Throws std::runtime_error where the library has no deterministic kernel.
  virtual std::unique_ptr<FusedPlan> plan(const FusedShape& shape) = 0;
};

// For the current device. Throws std::runtime_error that says why there is none.
std::unique_ptr<FusedLibrary> open_fused_library();

}  // namespace finetune::cuda
