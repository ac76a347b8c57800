#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "ops/backend.h"
#include "ops/cpu/amx_gemm.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kLargePage = int64_t{2} << 20;

struct Piece {
  float* data = nullptr;
  int64_t size = 0;
  ~Piece() { std::free(data); }
};

// Bytes to allocate for a need of `floats`, a multiple of the alignment: large pieces come in large
// pages, since tiles of matrices touch many small ones.
struct Allocation {
  int64_t alignment, bytes;
};
Allocation allocation_for(int64_t floats) {
  const int64_t alignment =
      floats * int64_t(sizeof(float)) >= kLargePage / 4 ? kLargePage : int64_t{64};
  return {alignment, round_up((floats + floats / 4) * int64_t(sizeof(float)), alignment)};
}

int64_t touched_bytes(int64_t floats) {
  const int64_t bytes = floats * int64_t(sizeof(float));
  return round_up(bytes, allocation_for(floats).alignment);
}

// oneDNN generates its kernels: code, tables and the pages of the library that do it. Measured.
constexpr int64_t kOneDnnBytes = int64_t{7} << 20;

// Of the packed operands of a product that multiply_bf16() is given.
int64_t packed_floats(int64_t m, int64_t n, int64_t depth) {
  return select_isa() == Isa::amx ? amx_packed_floats(m, n, depth) : (m + n) * depth;
}

}  // namespace

float* scratch(Scratch use, int64_t floats) {
  static thread_local Piece pieces[2];
  Piece& piece = pieces[int(use)];
  if (floats > piece.size) {
    std::free(piece.data);
    piece.size = 0;
    const auto [alignment, bytes] = allocation_for(floats);
    piece.data = static_cast<float*>(std::aligned_alloc(size_t(alignment), size_t(bytes)));
    if (piece.data == nullptr) throw std::bad_alloc();
    if (alignment == kLargePage) madvise(piece.data, size_t(bytes), MADV_HUGEPAGE);
    piece.size = bytes / int64_t(sizeof(float));
  }
  return piece.data;
}

}  // namespace finetune::cpu

namespace finetune {

int64_t cpu_scratch_bytes(DType compute, int64_t threads, int64_t tokens, int64_t forward_tokens,
                          int64_t hidden, int64_t inner) {
  const bool amx = compute == DType::bf16 && select_isa() == Isa::amx;
  int64_t operation = 0, task = 0;
  auto product = [&](int64_t m, int64_t n, int64_t depth) {
    if (compute == DType::bf16) operation = std::max(operation, cpu::packed_floats(m, n, depth));
    task = std::max(task, amx ? std::min(m, cpu::kAmxTaskRows) * std::min(n, cpu::kAmxTaskCols)
                              : std::min(m, cpu::kPackedRows) * std::min(depth, cpu::kPackedDepth));
  };
  for (int64_t wide : {3 * hidden, inner}) {
    product(forward_tokens, wide, hidden);
    product(forward_tokens, hidden, wide);
    product(tokens, wide, hidden);
    product(tokens, hidden, wide);
    product(wide, hidden, tokens);
    product(hidden, wide, tokens);
  }
  return cpu::touched_bytes(operation) + threads * cpu::touched_bytes(task) +
         (amx ? 0 : cpu::kOneDnnBytes);
}

}  // namespace finetune
