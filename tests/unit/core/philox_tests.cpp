// Philox against Random123's published answers, and its dropout.
#include <doctest/doctest.h>

#include <set>

#include "core/numeric/philox.h"

using namespace finetune;

// Known answers for philox4x32-10: tests/kat_vectors of Random123 1.14.0 (D. E. Shaw Research).
TEST_CASE("philox4x32-10 gives the published answers") {
  CHECK(philox({0, 0}, {0, 0, 0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("keys differ by seed and use") {
  std::set<uint64_t> keys;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{42}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (uint32_t use = 1; use < 120; ++use) {
      PhiloxKey key = derive_key(seed, use);
      keys.insert(uint64_t(key.high) << 32 | key.low);
    }
  }
  CHECK(keys.size() == 5 * 119);
}

TEST_CASE("dropout keeps each element with the asked probability") {
  Dropout dropout = Dropout::make(0.1, derive_key(42, uint32_t(RandomUse::head_dropout)), 3);
  CHECK(dropout.threshold == 6554);
  CHECK(dropout.scale == doctest::Approx(1 / 0.9).epsilon(1e-4));
  CHECK_FALSE(Dropout::make(0, {}, 0).on());
  int dropped = 0;
  std::set<uint32_t> distinct;
  for (uint32_t row = 0; row < 100; ++row) {
    for (uint32_t element = 0; element < 1000; ++element) {
      uint32_t bits = dropout_bits(dropout.key, row, 7, dropout.step, element);
      distinct.insert(bits);
      dropped += bits < dropout.threshold;
    }
  }
  // 100,000 draws of p = 0.1: standard deviation 95. Of 65,536 values 1 - exp(-1.526) are seen.
  CHECK(dropped > 10000 - 4 * 95);
  CHECK(dropped < 10000 + 4 * 95);
  CHECK(distinct.size() > 51100);
  CHECK(distinct.size() < 51700);
}

TEST_CASE("unit_interval is open at both ends") {
  CHECK(unit_interval(0) > 0.0);
  CHECK(unit_interval(0xFFFFFFFFu) < 1.0);
}
