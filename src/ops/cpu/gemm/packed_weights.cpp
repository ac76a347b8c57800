// Records which weights are packed, and invalidates them when memory is written.
#include "ops/cpu/gemm/packed_weights.h"

#include <algorithm>

namespace finetune::cpu {
namespace {

uintptr_t address(const void* p) {
  return reinterpret_cast<uintptr_t>(p);
}

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

}  // namespace

bool PackedWeights::fits(int64_t rows, int64_t cols, const float* place) {
  return cols > 0 && rows % kGroup == 0 && cols % kGroup == 0 && address(place) % 64 == 0;
}

void PackedWeights::pack(const float* w, int64_t rows, int64_t cols, const float* place) {
  const size_t bytes = size_t(rows * cols) * sizeof(float);
  const auto before = [](const Matrix& m, const float* p) { return address(m.w) < address(p); };
  const auto find = [&] { return std::lower_bound(matrices_.begin(), matrices_.end(), w, before); };
  const auto at = find();
  const bool known = at != matrices_.end() && at->w == w && at->rows == rows && at->cols == cols &&
                     at->place == place;
  if (!known || !at->valid) written(place, bytes);
  if (known) {
    at->valid = true;
  } else {
    std::erase_if(matrices_, [&](const Matrix& m) { return overlap(w, bytes, m.w, m.bytes()); });
    matrices_.insert(find(), {w, rows, cols, place, true});
  }
  any_ = true;
}

const uint16_t* PackedWeights::find(Tensor w) const {
  if (!any_ || w.size() == 0 || w.dtype != DType::f32 || !w.contiguous() || w.rows % kGroup != 0) {
    return nullptr;
  }
  const auto after = [](const float* p, const Matrix& m) { return address(p) < address(m.w); };
  const auto behind = std::upper_bound(matrices_.begin(), matrices_.end(), w.f32(), after);
  if (behind == matrices_.begin()) return nullptr;
  const auto first = behind - 1;
  const uintptr_t begin = address(w.data), skipped = begin - address(first->w);
  if (skipped % (size_t(kGroup * w.cols) * sizeof(float)) != 0) return nullptr;
  const uintptr_t end = begin + size_t(w.size()) * sizeof(float);
  auto next = first;
  for (uintptr_t reached = begin; reached < end; ++next) {
    if (next == matrices_.end() || !next->valid || next->cols != w.cols ||
        address(next->place) - address(next->w) != address(first->place) - address(first->w)) {
      return nullptr;
    }
    const uintptr_t from = address(next->w), to = from + next->bytes();
    // a gap, or w begins behind the last matrix
    if (from > reached || to <= reached) return nullptr;
    reached = to;
  }
  return reinterpret_cast<const uint16_t*>(first->place + skipped / sizeof(float));
}

void PackedWeights::written(const void* data, size_t bytes) {
  if (!any_) return;
  any_ = false;
  for (Matrix& m : matrices_) {
    m.valid = m.valid && !overlap(data, bytes, m.w, m.bytes()) &&
              !overlap(data, bytes, m.place, m.bytes());
    any_ = any_ || m.valid;
  }
}

void PackedWeights::written(Tensor x) {
  if (x.size() > 0) written(x.data, size_t((x.rows - 1) * x.stride + x.cols) * size_of(x.dtype));
}

void PackedWeights::forget() {
  for (Matrix& m : matrices_) m.valid = false;
  any_ = false;
}

}  // namespace finetune::cpu
