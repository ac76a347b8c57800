// Splits an operation of the CPU backend into tasks.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "core/threads/parallel.h"

namespace finetune::cpu {

// Treats denormals as zero inside a task, on every thread including the caller's: they cost a
// hundred cycles each and mean nothing here. So bits do not depend on which thread computes.
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

// Calls body(begin, end) over [0, count) in pieces of `grain`.
template <typename Body>
void for_ranges(int64_t count, int64_t grain, Body&& body) {
  parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
    FlushDenormals flush;
    body(begin, end);
  });
}

// How many rows of `cols` elements one task takes: about 16,384 elements.
inline int64_t row_grain(int64_t cols) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cols));
}

// Prefetch distance in elements for long runs: the hardware prefetcher looks less far, and not
// beyond a page.
constexpr int64_t kAhead = 512;

// Columns of a task that processes all rows.
constexpr int64_t kColumnStrip = 128;

constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Scratch memory that lives as long as the thread and only grows; 64-byte aligned, contents
// undefined. `operation` is shared with the operation's tasks, `task` is a task's own, `rounded`
// holds rounded operands during an operation. There is one piece of each at a time.
enum class Scratch { operation, task, rounded };
float* scratch(Scratch use, int64_t floats);

}  // namespace finetune::cpu
