// Matrix products by cuBLASLt: operands fp32 (never TF32) or bf16, fp32 sums, results of either
// type.
#pragma once

#include <cublasLt.h>

#include <map>
#include <tuple>
#include <vector>

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

// An operand, row-major.
struct Operand {
  const void* data;
  int64_t rows, cols, stride;
  bool transposed;  // op(X) is its transpose
};

// c (m, n) = op(a) (m, k) * op(b) (k, n) + bias (1, n), or c += that.
struct Product {
  Operand a, b;
  bool bf16;         // a and b, else they are fp32
  AnyMatrix c;       // fp32 if a and b are
  const void* bias;  // of c's type; may be null; not with accumulate
  bool accumulate;
};

// One algorithm per shape: the first that cuBLASLt's heuristic names, asked once and cached. The
// workspace is ours and has a fixed size, so that equal calls give equal bits. Each stream has one.
//
// With FINETUNE_CUDA_ALGORITHMS=timed it is the fastest of the first few whose result had the first
// one's bits when they were tried. Small results in bf16 can hide another order of sums, so later
// bits may depend on the choice. Their memory (Scratch::timed) is in no forecast.
class Matmul {
 public:
  // `memory` frees the workspaces, when they are no longer used.
  Matmul(DeviceMemory& memory, cudaStream_t stream);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  void add_stream(DeviceMemory& memory, cudaStream_t stream);
  // Fails on a stream that has no workspace here.
  void run(Context& context, const Product& product);

 private:
  // Everything that an algorithm may depend on; for pointers, their alignment.
  using Key = std::tuple<int64_t, int64_t, int64_t,  // m, n, k
                         int64_t, int64_t, int64_t,  // strides of a, b, c
                         bool, bool,                 // a and b transposed
                         bool, bool,                 // a and b in bf16, c in bf16
                         bool, bool,                 // bias, accumulate
                         uint32_t, uint32_t, uint32_t>;
  struct Plan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
    bool found = false;  // false: the plain kernel computes this shape
    ~Plan();
  };
  // What the heuristic names after a plan's algorithm. (Of a std::vector of it nvcc 13.0 dies.)
  static constexpr int kOthers = 7;
  struct Others {
    cublasLtMatmulAlgo_t algorithms[kOthers];
    int count = 0;
  };

  void make(const Product& product, const Key& key, Plan& plan, Others& others);
  // Makes plan.algorithm the fastest of all with its bits. Waits for the device.
  void choose(Context& context, const Product& product, Plan& plan, const Others& others);
  // `result`: in place of product.c's memory, which only an accumulating product reads.
  cublasStatus_t multiply(Context& context, const Product& product, Plan& plan,
                          const cublasLtMatmulAlgo_t& algorithm, void* result);

  // With more plans than this all are dropped; the heuristic gives the same answers again.
  static constexpr size_t kMostPlans = 8192;
  static constexpr size_t kWorkspace = size_t(kProductWorkspace);
  static constexpr size_t kMostTimed = size_t{256} << 20;  // bytes of a result
  const bool timed_;
  cublasLtHandle_t handle_ = nullptr;
  struct Workspace {
    cudaStream_t stream;
    void* memory;
  };
  std::vector<Workspace> workspaces_;
  std::map<Key, Plan> plans_;
};

// The same product by a plain kernel (plain_matmul.cu), for shapes and alignments that cuBLASLt
// does not support.
void plain_matmul(Context& context, const Product& product);

}  // namespace finetune::cuda
