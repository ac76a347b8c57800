// Rotary positions, and means of the rows of sequences.
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

// Thread i of a row has a pair of elements that lie half a head apart.
template <typename T>
__global__ void rotate_kernel(MatrixOf<T> x, const uint32_t* positions, Matrix table, bool back,
                              MatrixOf<T> y) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x, half = table.cols / 2;
  const float* turn = table.row(positions[r]);
  for_columns(x.cols / 2, [=](int64_t i) {
    const int64_t c = i % half, first = i / half * table.cols + c, second = first + half;
    const float cosine = turn[c], sine = back ? -turn[half + c] : turn[half + c];
    const float a = as_float(x.row(r)[first]), b = as_float(x.row(r)[second]);
    put(y.row(r) + first, fmaf(-b, sine, a * cosine));
    put(y.row(r) + second, fmaf(a, sine, b * cosine));
  });
}

// Block x is a sequence, whose rows each thread adds in order for its columns.
__global__ void mean_kernel(Matrix x, Segments segments, Matrix y) {
  wait_for_earlier_kernels();
  const int64_t b = blockIdx.x, begin = segments.offsets[b], end = segments.offsets[b + 1];
  for_columns(y.cols, [=](int64_t c) {
    float sum = 0;
#pragma unroll 8
    for (int64_t r = begin; r < end; ++r) sum += x.row(r)[c];
    y.row(b)[c] = sum / float(end - begin);
  });
}

__global__ void taps_kernel(Matrix x, Segments segments, int64_t taps, Matrix y) {
  wait_for_earlier_kernels();
  const int64_t b = blockIdx.x, begin = segments.offsets[b], end = segments.offsets[b + 1];
  for_columns(y.cols, [=](int64_t i) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t + i % taps - taps / 2;
      y.row(t)[i] = row >= begin && row < end ? x.row(row)[i / taps] : 0.0f;
    }
  });
}

__global__ void taps_backward_kernel(Matrix dy, Segments segments, int64_t taps, Matrix dx) {
  wait_for_earlier_kernels();
  const int64_t b = blockIdx.x, begin = segments.offsets[b], end = segments.offsets[b + 1];
  for_columns(dx.cols, [=](int64_t c) {
    for (int64_t r = begin; r < end; ++r) {
      float sum = 0;
      for (int64_t m = 0; m < taps; ++m) {
        const int64_t row = r - m + taps / 2;
        if (row >= begin && row < end) sum += dy.row(row)[c * taps + m];
      }
      dx.row(r)[c] = sum;
    }
  });
}

__global__ void mean_backward_kernel(Matrix dy, Segments segments, Matrix dx) {
  wait_for_earlier_kernels();
  const int64_t b = blockIdx.x, begin = segments.offsets[b], end = segments.offsets[b + 1];
  for_columns(dy.cols, [=](int64_t c) {
    const float value = dy.row(b)[c] / float(end - begin);
    for (int64_t r = begin; r < end; ++r) dx.row(r)[c] = value;
  });
}

}  // namespace

void rotate(Context& context, AnyMatrix x, const uint32_t* positions, Matrix table, bool back,
            AnyMatrix y) {
  const RowGrid grid = row_grid(x.rows, x.cols / 2);
  for_type(x.bf16, [&](auto element) {
    using T = decltype(element);
    launch(context, grid.blocks, grid.threads, rotate_kernel<T>, x.as<T>(), positions, table, back,
           y.as<T>());
  });
}

void segment_mean(Context& context, Matrix x, Segments segments, Matrix y) {
  const RowGrid grid = row_grid(y.rows, y.cols);
  launch(context, grid.blocks, grid.threads, mean_kernel, x, segments, y);
}

void gather_taps(Context& context, Matrix x, Segments segments, int64_t taps, Matrix y) {
  const RowGrid grid = row_grid(segments.count, y.cols);
  launch(context, grid.blocks, grid.threads, taps_kernel, x, segments, taps, y);
}

void gather_taps_backward(Context& context, Matrix dy, Segments segments, int64_t taps, Matrix dx) {
  const RowGrid grid = row_grid(segments.count, dx.cols);
  launch(context, grid.blocks, grid.threads, taps_backward_kernel, dy, segments, taps, dx);
}

void segment_mean_backward(Context& context, Matrix dy, Segments segments, Matrix dx) {
  const RowGrid grid = row_grid(dy.rows, dy.cols);
  launch(context, grid.blocks, grid.threads, mean_backward_kernel, dy, segments, dx);
}

}  // namespace finetune::cuda
