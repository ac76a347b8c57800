// Plain matrix products for every shape: c (m, n) = op(a) * op(b) + bias, or c += that. Tiles of 16
// x 16 in shared memory, one thread per element, k in order. Slow.
#include "ops/cuda/kernels/matmul.h"
#include "ops/cuda/kernels/pack.h"

namespace finetune::cuda {
namespace {

constexpr int kTile = 16;

// Element (r, c) of op(x), or 0 outside of it.
template <typename T>
__device__ float element(const Operand& x, int64_t r, int64_t c, int64_t rows, int64_t cols) {
  if (r >= rows || c >= cols) return 0;
  const int64_t at = x.transposed ? c * x.stride + r : r * x.stride + c;
  return as_float(static_cast<const T*>(x.data)[at]);
}

// From: the type of a and b; To: the type of c and the bias.
template <typename From, typename To>
__global__ void plain_matmul_kernel(Product p, int64_t k) {
  wait_for_earlier_kernels();
  __shared__ float a[kTile][kTile + 1], b[kTile][kTile + 1];
  const int y = int(threadIdx.x) / kTile, x = int(threadIdx.x) % kTile;
  const int64_t row = int64_t(blockIdx.x) * kTile + y, col = int64_t(blockIdx.y) * kTile + x;
  float sum = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    a[y][x] = element<From>(p.a, row, first + x, p.c.rows, k);
    b[y][x] = element<From>(p.b, first + y, col, k, p.c.cols);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fmaf(a[y][i], b[i][x], sum);
    __syncthreads();
  }
  if (row >= p.c.rows || col >= p.c.cols) return;
  To* c = p.c.as<To>().row(row) + col;
  const float bias = p.bias ? as_float(static_cast<const To*>(p.bias)[col]) : 0.0f;
  put(c, (p.accumulate ? as_float(*c) : 0.0f) + (sum + bias));
}

}  // namespace

void plain_matmul(Context& context, const Product& p) {
  const dim3 blocks(unsigned(divide_up(p.c.rows, kTile)), unsigned(divide_up(p.c.cols, kTile)));
  for_type(p.bf16, [&](auto from) {
    for_type(p.c.bf16, [&](auto to) {
      launch(context, blocks, kTile * kTile, plain_matmul_kernel<decltype(from), decltype(to)>, p,
             p.a.transposed ? p.a.rows : p.a.cols);
    });
  });
}

}  // namespace finetune::cuda
