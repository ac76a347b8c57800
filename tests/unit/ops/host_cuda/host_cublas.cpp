// cuBLASLt's functions as plain loops, replacing the library.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/numeric/dtype.h"

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "failed";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}

// More than a caller should keep.
static constexpr int kMostDescs = 10000;
static int descs = 0;

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t,
                                        cudaDataType_t) {
  if (descs == kMostDescs) return CUBLAS_STATUS_ALLOC_FAILED;
  ++descs;
  *desc = new HostMatmulDesc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  --descs;
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  auto set = [&](auto& field) {
    if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, size);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc->a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc->b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc->bias);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  if (ld < int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new HostMatrixLayout{type, rows, cols, ld};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new HostMatmulPreference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t size) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    return size == sizeof(uint64_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  }
  if (size != sizeof(uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    std::memcpy(&preference->reduction, value, size);
    return CUBLAS_STATUS_SUCCESS;
  }
  const int matrix = int(attribute) - int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  std::memcpy(&preference->alignment[matrix], value, size);
  // Limited to the alignment of all backend memory, so that the algorithm does not depend on
  // addresses.
  if (preference->alignment[matrix] > 64) return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

struct Shape {
  uint64_t rows, cols;
};
Shape shape_of(const HostMatrixLayout& x, cublasOperation_t operation) {
  if (operation == CUBLAS_OP_N) return {x.rows, x.cols};
  return {x.cols, x.rows};
}

float value_at(const void* data, cudaDataType_t type, uint64_t at) {
  return type == CUDA_R_32F ? static_cast<const float*>(data)[at]
                            : float(static_cast<const finetune::bfloat16*>(data)[at]);
}

// Rows and columns whose sums stay in registers.
constexpr uint64_t kRows = 4, kColumns = 8;

uint64_t stride_of(uint64_t cols) {
  return (cols + kColumns - 1) / kColumns * kColumns;
}

// op(x), row by row, zeros behind each up to stride_of its columns, and behind the last up to a
// multiple of kRows
std::vector<double> values(const void* data, const HostMatrixLayout& x,
                           cublasOperation_t operation) {
  const Shape shape = shape_of(x, operation);
  const uint64_t stride = stride_of(shape.cols);
  std::vector<double> out((shape.rows + kRows - 1) / kRows * kRows * stride);
  for (uint64_t c = 0; c < x.cols; ++c) {
    for (uint64_t r = 0; r < x.rows; ++r) {
      const uint64_t at = r + c * uint64_t(x.ld);
      const double value = double(value_at(data, x.type, at));
      out[operation == CUBLAS_OP_N ? r * stride + c : c * stride + r] = value;
    }
  }
  return out;
}

// Of `depth` products each, in that order: products are exact, as factors are floats. kRounds: what
// is there so far is rounded to bf16 after each. The compiler finds no vectors here by itself.
template <bool kRounds>
void sum_products(const double* left, uint64_t left_stride, const double* right,
                  uint64_t right_stride, uint64_t depth, double (&out)[kRows][kColumns]) {
  constexpr uint64_t kVector = 4;
  using Vector [[gnu::vector_size(kVector * sizeof(double))]] = double;
  Vector sums[kRows][kColumns / kVector] = {};
  for (uint64_t i = 0; i < depth; ++i) {
    Vector factors[kColumns / kVector];
    for (uint64_t v = 0; v < kColumns / kVector; ++v) {
      std::memcpy(&factors[v], right + i * right_stride + v * kVector, sizeof factors[v]);
    }
    for (uint64_t r = 0; r < kRows; ++r) {
      const double factor = left[r * left_stride + i];
      for (uint64_t v = 0; v < kColumns / kVector; ++v) sums[r][v] += factor * factors[v];
    }
    if constexpr (kRounds) {
      for (auto& row : sums) {
        for (Vector& some : row) {
          for (uint64_t c = 0; c < kVector; ++c) {
            some[c] = float(finetune::bfloat16(float(some[c])));
          }
        }
      }
    }
  }
  for (uint64_t r = 0; r < kRows; ++r) {
    for (uint64_t c = 0; c < kColumns; ++c) out[r][c] = sums[r][c / kVector][c % kVector];
  }
}

// The words of the workspace that every product uses.
constexpr size_t kWorkspaceWords = 64;

// A product keeps partial sums in its workspace from one of its kernels to the next. Here each kind
// of product leaves a mark there at its begin and finds it at its end: products that share a
// workspace must not run beside each other. Between products it holds nothing of use.
void begin_workspace(uint64_t* workspace, uint64_t mark) {
  const host_cuda::DeviceAccess access;
  std::fill_n(workspace, kWorkspaceWords, mark);
}
void end_workspace(uint64_t* workspace, uint64_t mark) {
  const host_cuda::DeviceAccess access;
  if (std::count(workspace, workspace + kWorkspaceWords, mark) != int64_t(kWorkspaceWords)) {
    std::fputs("host cuBLASLt: another product has written to this one's workspace\n", stderr);
    std::abort();
  }
  std::fill_n(workspace, kWorkspaceWords, ~uint64_t{0});
}

bool aligned(const void* pointer, uint32_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

}  // namespace

static int64_t begun[host_cuda::kAlgorithms];

int64_t host_cuda::products_of(int algorithm) {
  return begun[algorithm];
}

// Finds no algorithm for products of one column, nor (with another status) for bf16 rows at odd
// places, so that the caller's fallback is tested.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  const Shape left = shape_of(*a, desc->a), right = shape_of(*b, desc->b);
  if (wanted < 1 || left.cols != right.rows || d->rows != left.rows || d->cols != right.cols ||
      c->rows != d->rows || c->cols != d->cols || a->type != b->type || c->type != d->type ||
      (d->type != a->type && d->type != CUDA_R_32F) ||
      (desc->epilogue == CUBLASLT_EPILOGUE_BIAS && !desc->bias)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const uint32_t* aligned = preference->alignment;
  for (const auto& [x, bytes] : {std::pair{a, aligned[0]}, {b, aligned[1]}, {d, aligned[3]}}) {
    if (x->type == CUDA_R_16BF && (x->ld % 2 != 0 || bytes < 4)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  *found = left.rows == 1 ? 0 : std::min(wanted, host_cuda::kAlgorithms);
  if (*found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].workspaceSize = kWorkspaceWords * sizeof(uint64_t);
    std::memcpy(results[i].algo.alignment, preference->alignment, sizeof preference->alignment);
    results[i].algo.number = i;
    const int slowest = *found > 1 ? host_cuda::slowest_algorithm : 0;
    results[i].algo.microseconds = std::array{slowest, slowest / 5, 0}[size_t(i)];
    // The worst that the caller permits.
    results[i].algo.rounds_parts =
        (preference->reduction & ~uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)) != 0;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_size, cudaStream_t stream) {
  const void* operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    if (!aligned(operands[i], algo->alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool bias = desc->epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (bias && !aligned(desc->bias, algo->alignment[3])) return CUBLAS_STATUS_INVALID_VALUE;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  if (!workspace || workspace_size < kWorkspaceWords * sizeof(uint64_t)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  ++begun[algo->number];
  std::this_thread::sleep_for(std::chrono::microseconds(algo->microseconds));
  static uint64_t products = 0;
  const uint64_t mark = ++products;
  auto* const words = static_cast<uint64_t*>(workspace);
  host_cuda::enqueue(stream, [=] { begin_workspace(words, mark); });
  const bool rounds = algo->rounds_parts && d_layout->type == CUDA_R_16BF;
  const bool others = algo->number == host_cuda::kOtherBits;
  host_cuda::enqueue(stream, [=, desc = *desc, a_layout = *a_layout, b_layout = *b_layout,
                              d_layout = *d_layout] {
    const host_cuda::DeviceAccess access;
    const std::vector<double> left = values(a, a_layout, desc.a);
    const std::vector<double> right = values(b, b_layout, desc.b);
    const uint64_t m = d_layout.rows, n = d_layout.cols, k = shape_of(a_layout, desc.a).cols;
    auto write = [&](uint64_t row, uint64_t col, double sum) {
      const uint64_t at = row + col * uint64_t(d_layout.ld);
      float value = scale * float(sum) + (bias ? value_at(desc.bias, d_layout.type, row) : 0.0f);
      if (keep != 0) value += keep * value_at(c, d_layout.type, at);
      if (others) value *= 1.01f;
      if (d_layout.type == CUDA_R_32F) {
        static_cast<float*>(d)[at] = value;
      } else {
        static_cast<finetune::bfloat16*>(d)[at] = finetune::bfloat16(value);
      }
    };
    for (uint64_t row = 0; row < m; row += kRows) {
      for (uint64_t col = 0; col < n; col += kColumns) {
        double sums[kRows][kColumns];
        (rounds ? sum_products<true> : sum_products<false>)(&left[row * stride_of(k)], stride_of(k),
                                                            &right[col], stride_of(n), k, sums);
        for (uint64_t c = 0; c < kColumns && col + c < n; ++c) {
          for (uint64_t r = 0; r < kRows && row + r < m; ++r) {
            write(row + r, col + c, sums[r][c]);
          }
        }
      }
    }
  });
  host_cuda::enqueue(stream, [=] { end_workspace(words, mark); });
  return CUBLAS_STATUS_SUCCESS;
}
