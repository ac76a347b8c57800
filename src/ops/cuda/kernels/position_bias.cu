// The position bias of attention: its values by distance, and the gradient of its table.
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

__global__ void position_values_kernel(Matrix table, Matrix values) {
  wait_for_earlier_kernels();
  const int64_t head = blockIdx.x, span = (values.cols + 1) / 2;
  for_columns(values.cols, [=](int64_t d) {
    values.row(head)[d] = table.row(position_bucket(d - span + 1))[head];
  });
}

// Block x is a head; a thread sums a bucket, in the CPU's order.
__global__ void position_table_kernel(Matrix dvalues, Segments keys, Matrix dtable,
                                      bool accumulate) {
  wait_for_earlier_kernels();
  const int64_t head = blockIdx.x;
  const int32_t bucket = int32_t(threadIdx.x);
  double sum = 0;
  for (int64_t b = 0; b < keys.count; ++b) {
    const int64_t first = keys.offsets[b], length = keys.offsets[b + 1] - first;
    for (int64_t d = 1 - length; d < length; ++d) {
      if (position_bucket(d) != bucket) continue;
      sum += double(dvalues.row(head)[2 * first + length - 1 + d]);
    }
  }
  float& to = dtable.row(bucket)[head];
  to = float(sum + (accumulate ? double(to) : 0));
}

}  // namespace

void position_bias(Context& context, Matrix table, Matrix values) {
  const RowGrid grid = row_grid(values.rows, values.cols);
  launch(context, grid.blocks, grid.threads, position_values_kernel, table, values);
}

void position_bias_backward(Context& context, Matrix dvalues, Segments keys, Matrix dtable,
                            bool accumulate) {
  launch(context, dim3(unsigned(dvalues.rows)), kPositionBuckets, position_table_kernel, dvalues,
         keys, dtable, accumulate);
}

}  // namespace finetune::cuda
