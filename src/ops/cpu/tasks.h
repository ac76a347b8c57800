// How an operation of the CPU backend is cut into tasks.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "core/threads/parallel.h"

namespace finetune::cpu {

// Denormal operands cost a hundred cycles each and mean nothing here: inside a task they are zero
// on every thread, the caller's included, so that bits do not depend on who computes.
class FlushDenormals {
 public:
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }  // FTZ and DAZ
  ~FlushDenormals() { _mm_setcsr(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_;
};

template <typename Body>
void for_tasks(int64_t count, Body&& body) {
  parallel_for(count, [&](int64_t i) {
    FlushDenormals flush;
    body(i);
  });
}

// body(begin, end) over [0, count) in pieces of `grain`.
template <typename Body>
void for_ranges(int64_t count, int64_t grain, Body&& body) {
  parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
    FlushDenormals flush;
    body(begin, end);
  });
}

// Rows of a task that touches rows of `cols` elements: enough work to be worth a task.
inline int64_t row_grain(int64_t cols) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cols));
}

// Elements ahead of what a long run reads that are prefetched: the processor itself looks less far,
// and not beyond a page.
constexpr int64_t kAhead = 512;

// Columns of a task that runs down all rows.
constexpr int64_t kColumnStrip = 128;

constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Memory that lives as long as the thread and only grows, 64-byte aligned, contents undefined. An
// operation's memory is shared with its tasks; a task's is its own; rounded operands are there
// while an operation computes with them. Each has one piece at a time.
enum class Scratch { operation, task, rounded };
float* scratch(Scratch use, int64_t floats);

}  // namespace finetune::cpu
