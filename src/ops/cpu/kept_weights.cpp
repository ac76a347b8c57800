#include "ops/cpu/kept_weights.h"

#include <algorithm>
#include <functional>

namespace finetune::cpu {
namespace {

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

}  // namespace

bool KeptWeights::fits(int64_t rows, int64_t cols, const float* place) {
  return cols > 0 && rows % kGroup == 0 && cols % kGroup == 0 &&
         reinterpret_cast<uintptr_t>(place) % 64 == 0;
}

void KeptWeights::keep(const float* w, int64_t rows, int64_t cols, const float* place) {
  const size_t bytes = size_t(rows * cols) * sizeof(float);
  const auto before = [](const Matrix& m, const float* p) { return std::less<>()(m.w, p); };
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

const uint16_t* KeptWeights::find(Tensor w) const {
  if (!any_ || w.dtype != DType::f32 || !w.contiguous()) return nullptr;
  const float* const begin = w.f32();
  const auto after = [](const float* p, const Matrix& m) { return std::less<>()(p, m.w); };
  auto next = std::upper_bound(matrices_.begin(), matrices_.end(), begin, after);
  if (next == matrices_.begin()) return nullptr;
  const Matrix& first = *--next;
  const int64_t skipped = begin - first.w;
  if (skipped % (kGroup * w.cols) != 0) return nullptr;
  const float *const place = first.place + skipped, *const end = begin + w.size();
  for (const float* reached = begin; reached < end; ++next) {
    if (next == matrices_.end() || !next->valid || next->cols != w.cols || next->w > reached ||
        next->place - next->w != place - begin) {
      return nullptr;
    }
    const float* const last = next->w + next->rows * next->cols;
    if (last <= reached) return nullptr;
    reached = last;
  }
  return reinterpret_cast<const uint16_t*>(place);
}

void KeptWeights::written(const void* data, size_t bytes) {
  if (!any_) return;
  any_ = false;
  for (Matrix& m : matrices_) {
    m.valid = m.valid && !overlap(data, bytes, m.w, m.bytes()) &&
              !overlap(data, bytes, m.place, m.bytes());
    any_ = any_ || m.valid;
  }
}

void KeptWeights::written(Tensor x) {
  if (x.size() > 0) written(x.data, size_t((x.rows - 1) * x.stride + x.cols) * size_of(x.dtype));
}

void KeptWeights::forget() {
  for (Matrix& m : matrices_) m.valid = false;
  any_ = false;
}

}  // namespace finetune::cpu
