// Bob Jenkins' lookup3 and the 32-bit Fletcher checksum.
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

uint32_t fletcher32(std::string_view bytes) {
  auto folded = [](uint32_t sum) { return (sum & 0xFFFF) + (sum >> 16); };
  uint32_t sum = 0, sum_of_sums = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const uint32_t low = i + 1 < bytes.size() ? uint8_t(bytes[i + 1]) : 0;
    sum = folded(sum + (uint32_t(uint8_t(bytes[i])) << 8 | low));
    sum_of_sums = folded(sum_of_sums + sum);
  }
  return sum_of_sums << 16 | sum;
}

}  // namespace finetune::hdf5
