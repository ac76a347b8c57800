// CRC-32C by the processor's instruction, three lanes at a time.
#include "weights/tensorflow/crc32c.h"

#include <nmmintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/threads/parallel.h"

namespace finetune {
namespace {

// A checksum is a polynomial over GF(2) modulo the Castagnoli polynomial; its highest bit is the
// coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82F63B78u;
constexpr uint32_t kOne = 1u << 31;
constexpr size_t kLane = 4096;      // bytes; three lanes are computed side by side
constexpr size_t kBlock = 1 << 18;  // bytes per task

constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    sum ^= a & bit ? b : 0;
    b = (b >> 1) ^ (b & 1 ? kPolynomial : 0);
  }
  return sum;
}

// The factor by which appending `bytes` zero bytes multiplies a checksum.
constexpr uint32_t zeros(uint64_t bytes) {
  uint32_t factor = kOne, power = kOne >> 8;  // for one byte
  for (; bytes > 0; bytes >>= 1, power = product(power, power)) {
    if (bytes & 1) factor = product(factor, power);
  }
  return factor;
}

uint64_t word_at(const uint8_t* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// The instruction has a latency of three cycles and a throughput of one, so three lanes hide it.
uint32_t after_three_lanes(uint32_t crc, const uint8_t* data) {
  constexpr uint32_t kLaneFactor = zeros(kLane);
  uint64_t a = crc, b = 0, c = 0;
  for (size_t i = 0; i < kLane; i += sizeof(uint64_t)) {
    a = _mm_crc32_u64(a, word_at(data + i));
    b = _mm_crc32_u64(b, word_at(data + kLane + i));
    c = _mm_crc32_u64(c, word_at(data + 2 * kLane + i));
  }
  return product(product(uint32_t(a), kLaneFactor) ^ uint32_t(b), kLaneFactor) ^ uint32_t(c);
}

}  // namespace

uint32_t crc32c(const uint8_t* data, size_t size, uint32_t before) {
  uint32_t crc = ~before;
  for (; size >= 3 * kLane; data += 3 * kLane, size -= 3 * kLane) {
    crc = after_three_lanes(crc, data);
  }
  for (; size >= 8; data += 8, size -= 8) crc = uint32_t(_mm_crc32_u64(crc, word_at(data)));
  for (; size > 0; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return ~crc;
}

uint32_t joined_crc32c(uint32_t first, uint32_t second, uint64_t size) {
  return product(first, zeros(size)) ^ second;
}

uint32_t parallel_crc32c(const uint8_t* data, size_t size) {
  std::vector<uint32_t> blocks((size + kBlock - 1) / kBlock);
  parallel_for(int64_t(blocks.size()), [&](int64_t i) {
    const size_t begin = size_t(i) * kBlock;
    blocks[size_t(i)] = crc32c(data + begin, std::min(kBlock, size - begin));
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    crc = joined_crc32c(crc, blocks[i], std::min(kBlock, size - i * kBlock));
  }
  return crc;
}

uint32_t masked_crc32c(const uint8_t* data, size_t size) {
  uint32_t crc = crc32c(data, size);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace finetune
