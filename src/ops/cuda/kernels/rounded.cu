// Rounds matrices to bf16, and keeps rounded copies of weights up to date.
#include "ops/cuda/kernels/pack.h"
#include "ops/cuda/kernels/rounded.h"
#include "ops/cuda/kernels/warp.h"

namespace finetune::cuda {
namespace {

template <int kWidth, typename From, typename To>
__global__ void convert_kernel(MatrixOf<From> x, MatrixOf<To> to) {
  wait_for_earlier_kernels();
  const int64_t r = blockIdx.x;
  for_columns(x.cols / kWidth, [=](int64_t i) {
    float values[kWidth];
    load(x.row(r) + i * kWidth, values);
    store(to.row(r) + i * kWidth, values);
  });
}

template <typename From, typename To>
void convert(Context& context, MatrixOf<From> x, MatrixOf<To> to) {
  for_width(
      [&](auto width) {
        const RowGrid grid = row_grid(x.rows, x.cols / width());
        launch(context, grid.blocks, grid.threads, convert_kernel<width(), From, To>, x, to);
      },
      x, to);
}

constexpr int64_t kAligned = 64 / sizeof(bfloat16);  // ops/backend.h, allocate

}  // namespace

void round(Context& context, Matrix x, Bf16Matrix to) {
  convert(context, x, to);
}

void widen(Context& context, Bf16Matrix x, Matrix to) {
  convert(context, x, to);
}

RoundedWeights::Copies::iterator RoundedWeights::first_behind(const void* begin) {
  const auto* place = static_cast<const float*>(begin);
  auto found = copies_.upper_bound(place);
  if (found != copies_.begin() && std::prev(found)->second.end() > place) --found;
  return found;
}

// Where `copy` has w: its rows, or some columns of a bias. Null: it lacks a part of w, or has it at
// an address that is less aligned than a copy of its own, for which products may choose another
// algorithm.
bfloat16* RoundedWeights::place_in(const Copy& copy, const Matrix& w) {
  const int64_t first = w.data - copy.from.data, row = first / copy.from.stride;
  const int64_t column = first % copy.from.stride, place = row * copy.to.stride + column;
  const bool like_rows = w.rows == 1 ? copy.from.rows == 1 : w.stride == copy.from.stride;
  if (first < 0 || !like_rows || row + w.rows > copy.from.rows ||
      column + w.cols > copy.from.cols || place % kAligned != 0) {
    return nullptr;
  }
  return copy.to.data + place;
}

Bf16Matrix RoundedWeights::of(Context& context, Matrix w) {
  auto found = first_behind(w.data);
  bfloat16* place = found == copies_.end() ? nullptr : place_in(found->second, w);
  if (!place) {
    const Copy copy = {w, {nullptr, w.rows, w.cols, rounded_stride(w.cols)}};
    // Other views of the same weights may exist, whose copies kernels may still read.
    if (const auto other = first_behind(w.data);
        other != copies_.end() && other->first < copy.end()) {
      context.wait("rounded weights");
      drop(w.data, size_t(copy.end() - w.data) * sizeof(float));
    }
    const size_t bytes = size_t(w.rows * copy.to.stride) * sizeof(bfloat16);
    void* memory = context.allocate(bytes, "rounded weights");
    found = copies_.insert_or_assign(w.data, copy).first;
    place = found->second.to.data = static_cast<bfloat16*>(memory);
  }
  Copy& copy = found->second;
  if (!copy.fresh) {
    round(context, copy.from, copy.to);
    copy.fresh = true;
  }
  return {place, w.rows, w.cols, copy.to.stride};
}

bfloat16* RoundedWeights::target(const float* first, int64_t count) {
  const auto found = first_behind(first);
  if (found == copies_.end() || found->first >= first + count) return nullptr;
  const Copy& copy = found->second;
  const bool dense =
      copy.from.rows == 1 || (copy.from.stride == copy.from.cols && copy.to.stride == copy.to.cols);
  if (dense && first >= copy.from.data && first + count <= copy.end()) {
    return copy.to.data + (first - copy.from.data);
  }
  forget(first, size_t(count) * sizeof(float));
  return nullptr;
}

void RoundedWeights::forget(const void* begin, size_t bytes) {
  const void* end = static_cast<const char*>(begin) + bytes;
  for (auto i = first_behind(begin); i != copies_.end() && i->first < end; ++i) {
    i->second.fresh = false;
  }
}

void RoundedWeights::refresh(Context& context) {
  for (auto& [place, copy] : copies_) {
    if (!copy.fresh) round(context, copy.from, copy.to);
    copy.fresh = true;
  }
}

void RoundedWeights::drop(const void* begin, size_t bytes) {
  const void* end = static_cast<const char*>(begin) + bytes;
  for (auto i = first_behind(begin); i != copies_.end() && i->first < end;) {
    memory_.release(i->second.to.data);
    i = copies_.erase(i);
  }
}

}  // namespace finetune::cuda
