// Embedding kernels: y (T, H) = word[ids] + position[positions] + type[types], and gradients. The
// gradients need no atomics: every row of a table is summed by one block, its tokens in order.
#include "ops/cuda/kernels/column_sums.h"
#include "ops/cuda/kernels/warp.h"
#include "ops/cuda/ops.h"

namespace finetune::cuda {
namespace {

constexpr int kThreads = 256;

// The embedding rows of each token. `order` lists the tokens sorted by id.
struct Tokens {
  int64_t count;
  const int32_t* ids;
  const uint32_t* positions;
  const int32_t* types;
  const int32_t* order;
};

__global__ void embed_kernel(Tokens tokens, Matrix word, Matrix position, Matrix type, Matrix y) {
  wait_for_earlier_kernels();
  const int64_t t = blockIdx.x;
  const float* a = word.row(tokens.ids[t]);
  const float* b = position.data ? position.row(tokens.positions[t]) : nullptr;
  const float* c = type.data ? type.row(tokens.types[t]) : nullptr;
  for_columns(y.cols, [=](int64_t i) {
    const float sum = c ? a[i] + c[i] : a[i];  // the CPU's order of additions
    y.row(t)[i] = b ? sum + b[i] : sum;
  });
}

// sum + dy's rows row_at(begin), row_at(begin + 1), ... at column c, in this order. Sixteen loads
// are in flight together: a frequent word has hundreds of rows, all summed by this thread.
template <typename RowAt>
__device__ float add_rows(Matrix dy, int64_t c, float sum, int64_t begin, int64_t end,
                          const RowAt& row_at) {
  constexpr int kTogether = 16;
  int64_t i = begin;
  for (; i + kTogether <= end; i += kTogether) {
    float values[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) values[k] = dy.row(row_at(i + k))[c];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) sum += values[k];
  }
  for (; i < end; ++i) sum += dy.row(row_at(i))[c];
  return sum;
}

// Returns the end of the run of tokens with this id that begins at place `begin` of `order`. Ids
// ascend along `order`: a warp probes 32 places, first ever further apart, then closer.
__device__ int64_t end_of_run(const Tokens& tokens, int64_t begin, int32_t id) {
  int64_t last = begin;  // known to be in the run
  for (int64_t stride = 1;;) {
    const int64_t i = last + (lane() + 1) * stride;
    const bool inside = i < tokens.count && tokens.ids[tokens.order[i]] == id;
    const int matches = __popc(__ballot_sync(kAllLanes, inside));
    last += matches * stride;
    if (matches == kWarp) {
      stride *= kWarp;
    } else if (stride > 1) {
      stride /= kWarp;
    } else {
      return last + 1;
    }
  }
}

// Block x adds the run of equal ids that begins at place x of `order`; it returns if none begins
// there.
__global__ void word_gradient_kernel(Matrix dy, Tokens tokens, Matrix dword) {
  wait_for_earlier_kernels();
  const int64_t begin = blockIdx.x;
  const int32_t id = tokens.ids[tokens.order[begin]];
  if (begin > 0 && tokens.ids[tokens.order[begin - 1]] == id) return;
  const int64_t end = end_of_run(tokens, begin, id);
  for_columns(dy.cols, [=](int64_t c) {
    float& sum = dword.row(id)[c];
    sum = add_rows(dy, c, sum, begin, end, [=](int64_t i) { return tokens.order[i]; });
  });
}

// Block x adds the tokens at position x: searches pieces of kThreads tokens and adds those found in
// the order of the tokens. Block y is a strip of kThreads columns. The two barriers of a round keep
// the next round's writes of `counts` and `found` behind this round's reads.
__global__ void position_gradient_kernel(Matrix dy, Tokens tokens, Matrix dposition) {
  wait_for_earlier_kernels();
  constexpr int kWarps = kThreads / kWarp;
  __shared__ int32_t found[kThreads];
  __shared__ int counts[kWarps];
  const uint32_t position = blockIdx.x;
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  float sum = c < dy.cols ? dposition.row(position)[c] : 0.0f;
  for (int64_t first = 0; first < tokens.count; first += kThreads) {
    const int64_t t = first + threadIdx.x;
    const bool match = t < tokens.count && tokens.positions[t] == position;
    const unsigned matches = __ballot_sync(kAllLanes, match);
    if (lane() == 0) counts[warp()] = __popc(matches);
    __syncthreads();
    int before = __popc(matches & ((1u << lane()) - 1)), total = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp()) before += counts[w];
      total += counts[w];
    }
    if (match) found[before] = int32_t(t);
    __syncthreads();
    if (c < dy.cols) {
      sum = add_rows(dy, c, sum, 0, total, [&](int64_t i) { return found[i]; });
    }
  }
  if (c < dy.cols) dposition.row(position)[c] = sum;
}

// parts (pieces, types, H): sums over the tokens of each type in pieces of kRowsOfASum tokens.
// Block x is a piece, block y a strip of columns, block z a type.
__global__ void type_parts_kernel(Matrix dy, const int32_t* types, float* parts) {
  wait_for_earlier_kernels();
  const int64_t c = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= dy.cols) return;
  const int64_t begin = int64_t(blockIdx.x) * kRowsOfASum;
  const int64_t end = begin + kRowsOfASum < dy.rows ? begin + kRowsOfASum : dy.rows;
  float sum = 0;
  for (int64_t t = begin; t < end; ++t) {
    if (types[t] == int32_t(blockIdx.z)) sum += dy.row(t)[c];
  }
  parts[(int64_t(blockIdx.x) * gridDim.z + blockIdx.z) * dy.cols + c] = sum;
}

}  // namespace

void embed(Context& context, const int32_t* ids, const uint32_t* positions, const int32_t* types,
           Matrix word, Matrix position, Matrix type, Matrix y) {
  const Tokens tokens = {y.rows, ids, positions, types, nullptr};
  const RowGrid grid = row_grid(y.rows, y.cols);
  launch(context, grid.blocks, grid.threads, embed_kernel, tokens, word, position, type, y);
}

// dword[ids[t]] += dy row t, and likewise for the other tables; tables are contiguous
void embed_backward(Context& context, Matrix dy, const int32_t* ids, const uint32_t* positions,
                    const int32_t* types, const int32_t* order, Matrix dword, Matrix dposition,
                    Matrix dtype) {
  const Tokens tokens = {dy.rows, ids, positions, types, order};
  if (tokens.count == 0) return;
  const RowGrid grid = row_grid(tokens.count, dy.cols);
  launch(context, grid.blocks, grid.threads, word_gradient_kernel, dy, tokens, dword);
  const unsigned strips = unsigned(divide_up(dy.cols, kThreads));
  if (dposition.data) {
    launch(context, dim3(unsigned(dposition.rows), strips), kThreads, position_gradient_kernel, dy,
           tokens, dposition);
  }
  if (!dtype.data) return;
  const int64_t pieces = divide_up(tokens.count, kRowsOfASum);
  float* parts = context.scratch_floats(Scratch::sums, pieces * dtype.rows * dy.cols);
  launch(context, dim3(unsigned(pieces), strips, unsigned(dtype.rows)), kThreads, type_parts_kernel,
         dy, tokens.types, parts);
  const int64_t sums = dtype.rows * dy.cols;
  add_parts(context, parts, pieces, sums, {sums, true, dtype.data});
}

}  // namespace finetune::cuda
