// Bob Jenkins' lookup3.
#include "weights/hdf5/checksums.h"

#include <bit>
#include <cstring>

namespace finetune::hdf5 {
namespace {

struct Words {
  uint32_t a, b, c;

  void add(const char* twelve_bytes) {
    uint32_t words[3];
    std::memcpy(words, twelve_bytes, sizeof words);
    a += words[0];
    b += words[1];
    c += words[2];
  }

  void mix() {
    constexpr int kTurns[] = {4, 6, 8, 16, 19, 4};
    uint32_t* order[] = {&a, &b, &c};
    for (int i = 0; i < 6; ++i) {
      uint32_t &x = *order[i % 3], &y = *order[(i + 1) % 3], &z = *order[(i + 2) % 3];
      x = (x - z) ^ std::rotl(z, kTurns[i]);
      z += y;
    }
  }

  void finish() {
    constexpr int kTurns[] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t* order[] = {&c, &a, &b};
    for (int i = 0; i < 7; ++i) {
      uint32_t &x = *order[i % 3], &y = *order[(i + 2) % 3];
      x = (x ^ y) - std::rotl(y, kTurns[i]);
    }
  }
};

}  // namespace

uint32_t lookup3(std::string_view bytes) {
  constexpr size_t kStep = 12;
  const uint32_t start = 0xdeadbeefu + uint32_t(bytes.size());
  Words words{start, start, start};
  while (bytes.size() > kStep) {
    words.add(bytes.data());
    words.mix();
    bytes.remove_prefix(kStep);
  }
  if (bytes.empty()) return words.c;
  char last[kStep] = {};
  std::memcpy(last, bytes.data(), bytes.size());
  words.add(last);
  words.finish();
  return words.c;
}

}  // namespace finetune::hdf5
