// CRC-32C by instruction, in parallel and of joined pieces equals a plain loop's.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/threads/parallel.h"
#include "weights/tensorflow/crc32c.h"

using namespace finetune;

namespace {

uint32_t of(const std::string& text, uint32_t before = 0) {
  return crc32c(reinterpret_cast<const uint8_t*>(text.data()), text.size(), before);
}

// Bit by bit, as the polynomial is written.
uint32_t plain(const std::vector<uint8_t>& data, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

std::vector<uint8_t> sample(size_t size) {
  std::vector<uint8_t> data(size);
  uint32_t x = 1;
  for (auto& byte : data) byte = uint8_t((x = x * 1664525u + 1013904223u) >> 24);
  return data;
}

}  // namespace

TEST_CASE("CRC-32C is that of RFC 3720 and of its polynomial, for every length") {
  CHECK(of("") == 0);
  CHECK(of("123456789") == 0xE3069283u);
  CHECK(of(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(of(std::string(32, '\xff')) == 0x62A8AB43u);
  const std::vector<uint8_t> data = sample(40000);
  for (size_t size : {1, 7, 8, 9, 4095, 4096, 12287, 12288, 12289, 24576, 24583, 40000}) {
    CAPTURE(size);
    CHECK(crc32c(data.data(), size) == plain(data, size));
  }
  CHECK(crc32c(data.data() + 1, 30000) == plain({data.begin() + 1, data.end()}, 30000));
}

TEST_CASE("sums of pieces give the sum of all, in sequence, joined and by any number of threads") {
  const std::vector<uint8_t> data = sample(1000003);
  const uint32_t all = crc32c(data.data(), data.size());
  for (size_t cut : {size_t(0), size_t(1), size_t(4096), size_t(65537), data.size()}) {
    CAPTURE(cut);
    const uint32_t first = crc32c(data.data(), cut);
    CHECK(crc32c(data.data() + cut, data.size() - cut, first) == all);
    CHECK(joined_crc32c(first, crc32c(data.data() + cut, data.size() - cut), data.size() - cut) ==
          all);
  }
  const int before = threads();
  for (int count : {1, 2, 5}) {
    set_threads(count);
    CHECK(parallel_crc32c(data.data(), data.size()) == all);
    CHECK(parallel_crc32c(data.data(), 0) == 0);
  }
  set_threads(before);
}
