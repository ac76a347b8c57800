#include <cstdlib>
#include <new>

#include "ops/cpu/tasks.h"

namespace finetune::cpu {
namespace {

struct Piece {
  float* data = nullptr;
  int64_t size = 0;
  ~Piece() { std::free(data); }
};

}  // namespace

float* scratch(Scratch use, int64_t floats) {
  static thread_local Piece pieces[2];
  Piece& piece = pieces[int(use)];
  if (floats > piece.size) {
    std::free(piece.data);
    piece.size = 0;
    const int64_t wanted = round_up(floats + floats / 4, 16);
    piece.data = static_cast<float*>(std::aligned_alloc(64, size_t(wanted) * sizeof(float)));
    if (piece.data == nullptr) throw std::bad_alloc();
    piece.size = wanted;
  }
  return piece.data;
}

}  // namespace finetune::cpu
