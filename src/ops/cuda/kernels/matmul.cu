// Matrix products through cuBLASLt, with a plan cached for each shape.
#include <cstdint>

#include "core/switches.h"
#include "ops/cuda/kernels/matmul.h"
#include "ops/cuda/module/graphs.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

template <typename Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
        "a matrix product's description");
}

template <typename Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "a matrix product's preferences");
}

// The alignment of an address, up to the guaranteed alignment of backend memory (ops/backend.h).
// More would depend on where an arena happens to be, on the number of processes and on --recompute,
// but the algorithm must not.
constexpr uint32_t kMostAlignment = 64;
uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  uint32_t bytes = kMostAlignment;
  while (address % bytes != 0) bytes /= 2;
  return bytes;
}

struct Preference {
  cublasLtMatmulPreference_t handle = nullptr;
  Preference() { check(cublasLtMatmulPreferenceCreate(&handle), "a matrix product's preferences"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle); }
};

struct Timer {
  cudaEvent_t begin = nullptr, end = nullptr;
  Timer() {
    check(cudaEventCreateWithFlags(&begin, cudaEventDefault), "event");
    check(cudaEventCreateWithFlags(&end, cudaEventDefault), "event");
  }
  ~Timer() {
    cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
  }
  // Milliseconds of work on the context's stream.
  template <typename Work>
  float of(Context& context, const Work& work) {
    check(cudaEventRecord(begin, context.stream), "event");
    work();
    check(cudaEventRecord(end, context.stream), "event");
    context.wait(end, "a matrix product's algorithms");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    return milliseconds;
  }
};

// *differs = 1 if a and b (count) are not the same; else it stays.
__global__ void compare_kernel(const uint32_t* a, const uint32_t* b, int64_t count, int* differs) {
  wait_for_earlier_kernels();
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x) {
    if (a[i] != b[i]) *differs = 1;
  }
}

}  // namespace

Matmul::Matmul(DeviceMemory& memory, cudaStream_t stream)
    : timed_(kCudaAlgorithmsSwitch.is("timed")) {
  add_stream(memory, stream);
  check(cublasLtCreate(&handle_), "cuBLASLt");
}

void Matmul::add_stream(DeviceMemory& memory, cudaStream_t stream) {
  workspaces_.push_back({stream, memory.allocate(kWorkspace, "cuBLASLt's workspace")});
}

Matmul::~Matmul() {
  plans_.clear();
  if (handle_) cublasLtDestroy(handle_);
}

Matmul::Plan::~Plan() {
  if (operation) cublasLtMatmulDescDestroy(operation);
  for (cublasLtMatrixLayout_t layout : {a, b, c}) {
    if (layout) cublasLtMatrixLayoutDestroy(layout);
  }
}

// cuBLASLt is column-major. A row-major (rows, cols) matrix is a column-major (cols, rows) one with
// the stride as leading dimension, so C = op(A) op(B) is computed as C^T = op(B)^T op(A)^T: B comes
// first, and each operand has the same transposition flag as here.
void Matmul::make(const Product& p, const Key& key, Plan& plan, Others& others) {
  // If the rows of a bf16 result begin at odd elements, cuBLASLt's kernels (13.1, on an H200) round
  // the product, add the bias and round again.
  if (p.bias && p.c.bf16 && (p.c.stride % 2 != 0 || alignment(p.c.data) < 4)) return;
  const cudaDataType_t type = p.bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const cudaDataType_t result_type = p.c.bf16 ? CUDA_R_16BF : CUDA_R_32F;
  check(cublasLtMatmulDescCreate(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a matrix product's description");
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias) {  // along the columns of C, which are the rows of C^T, as cuBLASLt's bias is,
                 // in C's type
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  }
  auto layout = [](cublasLtMatrixLayout_t& out, cudaDataType_t element, int64_t rows, int64_t cols,
                   int64_t stride) {
    check(cublasLtMatrixLayoutCreate(&out, element, uint64_t(cols), uint64_t(rows), stride),
          "a matrix's layout");
  };
  layout(plan.a, type, p.b.rows, p.b.cols, p.b.stride);
  layout(plan.b, type, p.a.rows, p.a.cols, p.a.stride);
  layout(plan.c, result_type, p.c.rows, p.c.cols, p.c.stride);

  const int64_t k = std::get<2>(key);
  Preference preference;
  set(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  const auto [left, right, result] =
      std::tuple{std::get<12>(key), std::get<13>(key), std::get<14>(key)};
  set(preference.handle, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right);
  set(preference.handle, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left);
  set(preference.handle, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result);
  set(preference.handle, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result);
  // The heuristic reads the bias's alignment from its address: pass the lowest that such a product
  // may have.
  if (p.bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, uintptr_t{result});
  // Partial sums of a long sum are kept in fp32 in the workspace and added by a separate kernel in
  // one order. Adding them in C itself (INPLACE) would depend on the order in which blocks finish,
  // and would round each time if C is bf16.
  //
  // Hopper kernels of cuBLASLt (12.8 to 13.2) lose the last k % 64 products of a bf16 sum if its
  // whole blocks of 64 divide evenly among more than k % 64 parts: no parts are allowed where that
  // is possible. Micro-batches are padded (data/packing.h) so that it is impossible in their sums.
  const bool parts = !p.bf16 || k % 64 == 0 || k / 64 <= k % 64;
  set(preference.handle, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      uint32_t(parts ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE));
  cublasLtMatmulHeuristicResult_t named[1 + kOthers] = {};
  const cublasLtMatmulHeuristicResult_t& best = named[0];
  int results = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, plan.operation, plan.a, plan.b, plan.c, plan.c,
                                     preference.handle, timed_ ? 1 + kOthers : 1, named, &results);
  // It returns either status for unsupported shapes and alignments.
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) {
    check(status, "a matrix product's algorithm");
  }
  plan.found = status == CUBLAS_STATUS_SUCCESS && results > 0 &&
               best.state == CUBLAS_STATUS_SUCCESS && best.workspaceSize <= kWorkspace;
  plan.algorithm = best.algo;
  for (int i = 1; i < results; ++i) {
    if (named[i].state == CUBLAS_STATUS_SUCCESS && named[i].workspaceSize <= kWorkspace) {
      others.algorithms[others.count++] = named[i].algo;
    }
  }
}

cublasStatus_t Matmul::multiply(Context& context, const Product& p, Plan& plan,
                                const cublasLtMatmulAlgo_t& algorithm, void* result) {
  const auto own = std::ranges::find(workspaces_, context.stream, &Workspace::stream);
  if (own == workspaces_.end()) throw Failure("a matrix product on a stream without a workspace");
  if (p.bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  const float alpha = 1, beta = p.accumulate ? 1 : 0;
  return cublasLtMatmul(handle_, plan.operation, &alpha, p.b.data, plan.a, p.a.data, plan.b, &beta,
                        p.accumulate ? p.c.data : result, plan.c, result, plan.c, &algorithm,
                        own->memory, kWorkspace, context.stream);
}

void Matmul::choose(Context& context, const Product& p, Plan& plan, const Others& others) {
  constexpr int kTimes = 3, kThreads = 256;
  constexpr int64_t kBlocks = 1024;
  constexpr float kGain = 0.97f;  // of the first one's time: less is noise
  const size_t elements = size_t((p.c.rows - 1) * p.c.stride + p.c.cols);
  const size_t words = (elements * (p.c.bf16 ? 2 : 4) + 255) / 256 * 64;
  const size_t bytes = words * sizeof(uint32_t);
  if (others.count == 0 || bytes > kMostTimed || context.graphs->recording()) return;
  context.join();  // the second stream's work would slow the first algorithm alone
  // Two results, and whether they differ.
  char* const first = static_cast<char*>(context.scratch(Scratch::timed, 2 * bytes + sizeof(int)));
  char* const other = first + bytes;
  int* const differs = reinterpret_cast<int*>(other + bytes);
  // Between rows it stays; no product gives such values, so one that writes nothing is found.
  auto poison = [&](char* result) {
    check(cudaMemsetAsync(result, 0xFF, bytes, context.stream), "a matrix product's algorithms");
  };
  poison(first);
  check(multiply(context, p, plan, plan.algorithm, first), "a matrix product");
  Timer timer;
  auto time_of = [&](const cublasLtMatmulAlgo_t& algorithm) {
    return timer.of(context, [&] {
      for (int i = 0; i < kTimes; ++i) {
        check(multiply(context, p, plan, algorithm, other), "a matrix product");
      }
    });
  };
  float least = kGain * time_of(plan.algorithm);
  for (int i = 0; i < others.count; ++i) {
    const cublasLtMatmulAlgo_t& algorithm = others.algorithms[i];
    poison(other);
    fill_zero(context, differs, 1, sizeof(int), 0);
    if (multiply(context, p, plan, algorithm, other) != CUBLAS_STATUS_SUCCESS) continue;
    launch(context, dim3(unsigned(std::min(divide_up(int64_t(words), kThreads), kBlocks))),
           kThreads, compare_kernel, reinterpret_cast<const uint32_t*>(first),
           reinterpret_cast<const uint32_t*>(other), int64_t(words), differs);
    int found = 0;
    download(context, &found, differs, sizeof found);
    if (found) continue;
    if (const float time = time_of(algorithm); time < least) {
      least = time;
      plan.algorithm = algorithm;
    }
  }
  context.wait("a matrix product's algorithms");  // another stream may use the memory next
}

void Matmul::run(Context& context, const Product& p) {
  const int64_t k = p.a.transposed ? p.a.rows : p.a.cols;
  if (p.c.rows == 0 || p.c.cols == 0) return;
  if (k == 0) return plain_matmul(context, p);
  // Kernels with the bias epilogue read the bias with C's alignment.
  const uint32_t result =
      std::min(alignment(p.c.data), p.bias ? alignment(p.bias) : kMostAlignment);
  const Key key{p.c.rows,
                p.c.cols,
                k,
                p.a.stride,
                p.b.stride,
                p.c.stride,
                p.a.transposed,
                p.b.transposed,
                p.bf16,
                p.c.bf16,
                p.bias != nullptr,
                p.accumulate,
                alignment(p.a.data),
                alignment(p.b.data),
                result};
  if (plans_.size() >= kMostPlans && plans_.count(key) == 0) plans_.clear();
  const auto [entry, is_new] = plans_.try_emplace(key);
  Plan& plan = entry->second;
  if (is_new) {
    try {
      Others others;
      make(p, key, plan, others);
      if (!plan.found) {
        const std::string line = "warning: cuBLASLt has no exact algorithm for a product of (" +
                                 std::to_string(p.c.rows) + "," + std::to_string(k) + ") and (" +
                                 std::to_string(k) + "," + std::to_string(p.c.cols) +
                                 "): a slow kernel computes it";
        context.log(line.c_str());
      } else {
        choose(context, p, plan, others);
      }
    } catch (...) {
      plans_.erase(entry);
      throw;
    }
  }
  if (!plan.found) return plain_matmul(context, p);
  check(multiply(context, p, plan, plan.algorithm, p.c.data), "a matrix product");
}

}  // namespace finetune::cuda
