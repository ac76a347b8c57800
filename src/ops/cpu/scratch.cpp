// Scratch memory of each thread, which grows and is reused.
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "core/per_thread.h"
#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

constexpr int64_t kLargePage = int64_t{2} << 20;

struct Piece {
  float* data = nullptr;
  int64_t size = 0;
  ~Piece() { std::free(data); }
};

struct Pieces {
  Piece of[3];
};

}  // namespace

float* scratch(Scratch use, int64_t floats) {
  Piece& piece = per_thread<Pieces>().of[int(use)];
  if (floats > piece.size) {
    std::free(piece.data);
    piece.size = 0;
    // Large buffers use large pages: tiles of matrices touch many small pages.
    const int64_t unit = floats * int64_t(sizeof(float)) >= kLargePage / 4 ? kLargePage : 64;
    const int64_t wanted =
        round_up((floats + floats / 4) * int64_t(sizeof(float)), unit) / int64_t(sizeof(float));
    const size_t bytes = size_t(wanted) * sizeof(float);
    piece.data = static_cast<float*>(std::aligned_alloc(size_t(unit), bytes));
    if (piece.data == nullptr) throw std::bad_alloc();
    if (unit == kLargePage) madvise(piece.data, bytes, MADV_HUGEPAGE);
    piece.size = wanted;
  }
  return piece.data;
}

}  // namespace finetune::cpu
