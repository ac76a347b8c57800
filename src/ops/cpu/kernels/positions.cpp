// Rotary positions, and means of the rows of sequences, on vectors.
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/kernels/positions.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/backend.h"
#include "ops/cpu/simd-inl.h"
#include "ops/cpu/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {
namespace {

template <class T>
void typed_rotate(Tensor x, const uint32_t* positions, Tensor table, bool back, Tensor y,
                  int64_t begin, int64_t end) {
  const int64_t size = table.cols, half = size / 2;
  for (int64_t r = begin; r < end; ++r) {
    const float* cosines = table.f32() + int64_t{positions[r]} * table.stride;
    const float* sines = cosines + half;
    for (int64_t head = 0; head < x.cols; head += size) {
      const T* from = x.as<T>() + r * x.stride + head;
      T* to = y.as<T>() + r * y.stride + head;
      for_lanes(half, [=](auto d, int64_t i) HWY_ATTR {
        const auto a = load_as(d, from + i), b = load_as(d, from + half + i);
        const auto cosine = hn::LoadU(d, cosines + i);
        auto sine = hn::LoadU(d, sines + i);
        if (back) sine = hn::Neg(sine);
        store_as(d, hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), to + i);
        store_as(d, hn::MulAdd(a, sine, hn::Mul(b, cosine)), to + half + i);
      });
    }
  }
}

void rotate_rows(Tensor x, const uint32_t* positions, Tensor table, bool back, Tensor y,
                 int64_t begin, int64_t end) {
  const auto rows = x.dtype == DType::bf16 ? typed_rotate<bfloat16> : typed_rotate<float>;
  rows(x, positions, table, back, y, begin, end);
}

constexpr int64_t kRowsOfASum = 64;  // rows added up before they are added to the total

// Columns [column, column + count) of the mean of rows [begin, end).
void mean_strip(Tensor x, int64_t begin, int64_t end, int64_t column, int64_t count, float* mean) {
  HWY_ALIGN float total[cpu::kColumnStrip] = {};
  for (int64_t first = begin; first < end; first += kRowsOfASum) {
    HWY_ALIGN float sums[cpu::kColumnStrip] = {};
    for (int64_t r = first; r < HWY_MIN(first + kRowsOfASum, end); ++r) {
      add_to(x.f32() + r * x.stride + column, sums, count);
    }
    add_to(sums, total, count);
  }
  const float length = float(end - begin);
  for (int64_t i = 0; i < count; ++i) mean[i] = total[i] / length;
}

}  // namespace
}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/cpu/cpu_backend.h"

namespace finetune {
HWY_EXPORT(rotate_rows);
HWY_EXPORT(mean_strip);

void CpuBackend::rotate(Tensor x, const uint32_t* positions, Tensor table, bool back, Tensor y) {
  FINETUNE_CHECK(y.rows == x.rows && y.cols == x.cols && y.dtype == x.dtype);
  FINETUNE_CHECK(table.cols % 2 == 0 && x.cols % table.cols == 0);
  cpu::for_ranges(x.rows, cpu::row_grain(x.cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(rotate_rows)(x, positions, table, back, y, begin, end);
  });
}

void CpuBackend::segment_mean(Tensor x, Segments segments, Tensor y) {
  FINETUNE_CHECK(y.rows == segments.count && y.cols == x.cols);
  const int64_t strips = (y.cols + cpu::kColumnStrip - 1) / cpu::kColumnStrip;
  cpu::for_tasks(y.rows * strips, [&](int64_t i) {
    const int64_t b = i / strips, column = i % strips * cpu::kColumnStrip;
    HWY_DYNAMIC_DISPATCH(mean_strip)
    (x, segments.offsets[b], segments.offsets[b + 1], column,
     std::min(cpu::kColumnStrip, y.cols - column), y.f32() + b * y.stride + column);
  });
}

void CpuBackend::gather_taps(Tensor x, Segments segments, int64_t taps, Tensor y) {
  FINETUNE_CHECK(y.rows == x.rows && y.cols == x.cols * taps && taps % 2 == 1);
  cpu::for_tasks(segments.count, [&](int64_t b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    for (int64_t t = begin; t < end; ++t) {
      float* const to = y.f32() + t * y.stride;
      for (int64_t m = 0; m < taps; ++m) {
        const int64_t row = t + m - taps / 2;
        const bool is_there = row >= begin && row < end;
        const float* const from = x.f32() + row * x.stride;
        for (int64_t c = 0; c < x.cols; ++c) to[c * taps + m] = is_there ? from[c] : 0.0f;
      }
    }
  });
}

void CpuBackend::gather_taps_backward(Tensor dy, Segments segments, int64_t taps, Tensor dx) {
  FINETUNE_CHECK(dy.rows == dx.rows && dy.cols == dx.cols * taps && taps % 2 == 1);
  cpu::for_tasks(segments.count, [&](int64_t b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    for (int64_t r = begin; r < end; ++r) {
      float* const to = dx.f32() + r * dx.stride;
      std::fill_n(to, dx.cols, 0.0f);
      for (int64_t m = 0; m < taps; ++m) {
        const int64_t row = r - m + taps / 2;
        if (row < begin || row >= end) continue;
        const float* const from = dy.f32() + row * dy.stride;
        for (int64_t c = 0; c < dx.cols; ++c) to[c] += from[c * taps + m];
      }
    }
  });
}

void CpuBackend::segment_mean_backward(Tensor dy, Segments segments, Tensor dx) {
  FINETUNE_CHECK(dy.rows == segments.count && dy.cols == dx.cols);
  cpu::for_tasks(dy.rows, [&](int64_t b) {
    const int64_t begin = segments.offsets[b], end = segments.offsets[b + 1];
    const float length = float(end - begin);
    const float* from = dy.f32() + b * dy.stride;
    for (int64_t r = begin; r < end; ++r) {
      float* to = dx.f32() + r * dx.stride;
      for (int64_t c = 0; c < dy.cols; ++c) to[c] = from[c] / length;
    }
  });
}

}  // namespace finetune
#endif
