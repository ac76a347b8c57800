// Products of the linear layers. In bf16 the operands are rounded into scratch memory first, to the
// nearest and ties to even; sums and results are fp32 (as ops/cpu/gemm_bf16.cpp).
#include "core/dtype.h"
#include "ops/cuda/column_sums.h"
#include "ops/cuda/matmul.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/warp.h"

namespace finetune::cuda {
namespace {

// to (rows, stride) = x (rows, cols) in bf16; what lies beyond `cols` is not written
__global__ void round_kernel(Matrix x, uint16_t* to, int64_t stride) {
  const int64_t r = blockIdx.x;
  for_columns(x.cols, [=](int64_t c) { to[r * stride + c] = bfloat16(x.row(r)[c]).bits; });
}

// x as the context's products take it. Rows of the copy begin at multiples of 16 bytes, as tensor
// cores want them.
Operand operand(Context& context, Matrix x, bool transposed, Scratch place) {
  if (!context.bf16) return {x.data, x.rows, x.cols, x.stride, transposed};
  const int64_t stride = divide_up(x.cols, 8) * 8;
  auto* to =
      static_cast<uint16_t*>(context.scratch(place, size_t(x.rows * stride) * sizeof(uint16_t)));
  const RowGrid grid = row_grid(x.rows, x.cols);
  launch(context, grid.blocks, grid.threads, round_kernel, x, to, stride);
  return {to, x.rows, x.cols, stride, transposed};
}

// c = or += op(a) * op(b) + bias
void multiply(Context& context, Matrix a, bool transpose_a, Matrix b, bool transpose_b, Matrix bias,
              Matrix c, bool accumulate) {
  Product p = {};
  p.a = operand(context, a, transpose_a, Scratch::left);
  p.b = operand(context, b, transpose_b, Scratch::right);
  p.bf16 = context.bf16;
  p.bias = bias.data;
  p.c = c;
  p.accumulate = accumulate;
  context.matmul->run(context, p);
}

void clear(Context& context, Matrix x) {
  fill_zero(context, x.data, x.rows, size_t(x.cols) * sizeof(float),
            size_t(x.stride) * sizeof(float));
}

}  // namespace

// y (R, out) = x (R, in) * w (out, in)^T + bias (1, out)
void linear(Context& context, Matrix x, Matrix w, Matrix bias, Matrix y) {
  multiply(context, x, false, w, true, bias, y, false);
}

// dx (R, in) = or += dy (R, out) * w (out, in)
void linear_backward_input(Context& context, Matrix dy, Matrix w, Matrix dx, bool accumulate) {
  multiply(context, dy, false, w, false, Matrix{}, dx, accumulate);
}

// dw (out, in) = or += dy (R, out)^T * x (R, in); dbias (1, out) = or += column sums of dy
void linear_backward_weight(Context& context, Matrix dy, Matrix x, Matrix dw, Matrix dbias,
                            bool accumulate) {
  if (!accumulate && dy.rows == 0) clear(context, dw);
  if (!accumulate && dbias.data) clear(context, dbias);
  if (dy.rows == 0) return;
  multiply(context, dy, true, x, false, Matrix{}, dw, accumulate);
  if (dbias.data) column_sums(context, dy, dbias.data);
}

}  // namespace finetune::cuda
