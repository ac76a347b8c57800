// Products of the linear layers. In bf16, fp32 operands are rounded first: weights once after each
// change (rounded.h), others into scratch memory. Sums are fp32, results have the caller's type; a
// bias added to a bf16 result is rounded too, as cuBLASLt requires.
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/kernels/matmul.h"
#include "ops/cuda/kernels/rounded.h"
#include "ops/cuda/module/second_stream.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

AnyMatrix any(Matrix x) {
  return {x.data, x.rows, x.cols, x.stride, false};
}

Operand of(Bf16Matrix x, bool transposed) {
  return {x.data, x.rows, x.cols, x.stride, transposed};
}

// Returns x in the type of the context's products.
Operand operand(Context& context, AnyMatrix x, bool transposed, Scratch place) {
  if (x.bf16 || !context.bf16) return {x.data, x.rows, x.cols, x.stride, transposed};
  const int64_t stride = rounded_stride(x.cols);
  void* memory = context.scratch(place, size_t(x.rows * stride) * sizeof(bfloat16));
  const Bf16Matrix to = {static_cast<bfloat16*>(memory), x.rows, x.cols, stride};
  round(context, x.as<float>(), to);
  return of(to, transposed);
}

Operand weight(Context& context, AnyMatrix w, bool transposed) {
  if (w.bf16 || !context.bf16) return {w.data, w.rows, w.cols, w.stride, transposed};
  return of(context.rounded_weights->of(context, w.as<float>()), transposed);
}

// c = or += a * b + bias
void multiply(Context& context, Operand a, Operand b, const void* bias, AnyMatrix c,
              bool accumulate) {
  context.matmul->run(context, {a, b, context.bf16, c, bias, accumulate});
}

void clear(Context& context, Matrix x) {
  fill_zero(context, x.data, x.rows, size_t(x.cols) * sizeof(float),
            size_t(x.stride) * sizeof(float));
}

// Logits of answers, one pair per token.
bool is_pair(AnyMatrix dy) {
  return dy.cols == 2 && !dy.bf16;
}

// The epilogue of cuBLASLt that sums dbias cannot add to what is there.
void weight_gradient(Context& context, AnyMatrix dy, AnyMatrix x, Matrix dw, Matrix dbias,
                     bool accumulate) {
  if (dy.rows == 0) {
    if (accumulate) return;
    clear(context, dw);
    if (dbias.data) clear(context, dbias);
    return;
  }
  if (is_pair(dy)) {
    two_weighted_sums(context, dy.as<float>(), x, dw, accumulate);
  } else {
    multiply(context, operand(context, dy, true, Scratch::left),
             operand(context, x, false, Scratch::right), nullptr, any(dw), accumulate);
  }
  if (dbias.data) column_sums(context, dy, dbias.data, accumulate);
}

// Bytes of operand()'s scratch memory.
size_t rounded_bytes(const Context& context, AnyMatrix x) {
  if (x.bf16 || !context.bf16) return 0;
  return size_t(x.rows * rounded_stride(x.cols)) * sizeof(bfloat16);
}

}  // namespace

// y (R, out) = x (R, in) * w (out, in)^T + bias (1, out)
void linear(Context& context, AnyMatrix x, AnyMatrix w, Matrix bias, AnyMatrix y) {
  const void* added = bias.data;
  if (added && y.bf16) added = context.rounded_weights->of(context, bias).data;
  multiply(context, operand(context, x, false, Scratch::left), weight(context, w, true), added, y,
           false);
}

// dx (R, in) = or += dy (R, out) * w (out, in)
void linear_backward_input(Context& context, AnyMatrix dy, Matrix w, AnyMatrix dx,
                           bool accumulate) {
  multiply(context, operand(context, dy, false, Scratch::left), weight(context, any(w), false),
           nullptr, dx, accumulate);
}

// dw (out, in) = or += dy (R, out)^T * x (R, in); dbias (1, out) = or += column sums of dy
void linear_backward_weight(Context& context, AnyMatrix dy, AnyMatrix x, Matrix dw, Matrix dbias,
                            bool accumulate) {
  const auto compute = [&] { weight_gradient(context, dy, x, dw, dbias, accumulate); };
  if (!context.second) return compute();
  SecondStream& second = *context.second;
  const int64_t sums = dbias.data ? divide_up(dy.rows, kRowsOfASum) * dy.cols : 0;
  if (!is_pair(dy) && second.has_room(rounded_bytes(context, dy), rounded_bytes(context, x),
                                      size_t(sums) * sizeof(float))) {
    return second.run({dy, x, dw, dbias}, compute);
  }
  for (const MemoryRange& range :
       {MemoryRange(dy), MemoryRange(x), MemoryRange(dw), MemoryRange(dbias)}) {
    second.wait_for(range);
  }
  compute();
}

}  // namespace finetune::cuda
