// Conversions of binary16 and bfloat16: every value, and rounding.
#include <doctest/doctest.h>

#include <cmath>

#include "core/numeric/dtype.h"

using namespace finetune;

namespace {

// The value of a binary16 from the definition (IEEE 754-2008, 3.4).
double half_value(uint16_t half) {
  double sign = half & 0x8000 ? -1.0 : 1.0;
  int exponent = (half >> 10) & 31;
  int mantissa = half & 0x3FF;
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

}  // namespace

TEST_CASE("every binary16 converts to its value and back to its bits") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half = uint16_t(bits);
    double expected = half_value(half);
    float value = half_to_float(half);
    if (std::isnan(expected)) {
      uint16_t back = float_to_half(value);
      wrong += !std::isnan(value) || (back & 0x7C00) != 0x7C00 || (back & 0x3FF) == 0;
    } else {
      wrong += double(value) != expected || std::signbit(value) != std::signbit(expected);
      wrong += float_to_half(value) != half;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats round to the nearest binary16, ties to even") {
  int wrong = 0;
  for (uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {
    uint16_t low = uint16_t(bits), high = uint16_t(bits + 1);
    float middle = float((half_value(low) + half_value(high)) / 2);  // exact
    wrong += float_to_half(middle) != (low & 1 ? high : low);
    wrong += float_to_half(std::nextafter(middle, 0.0f)) != low;
    wrong += float_to_half(std::nextafter(middle, HUGE_VALF)) != high;
    wrong += float_to_half(-middle) != ((low & 1 ? high : low) | 0x8000);
  }
  CHECK(wrong == 0);
  CHECK(float_to_half(65519.99f) == 0x7BFF);
  CHECK(float_to_half(65520.0f) == 0x7C00);
  CHECK(float_to_half(1e30f) == 0x7C00);
  CHECK(float_to_half(-HUGE_VALF) == 0xFC00);
  CHECK(float_to_half(1e-30f) == 0);
}

TEST_CASE("bfloat16 rounds to nearest even") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = std::bit_cast<float>(bits << 16);
    bfloat16 back(value);
    if (std::isnan(value)) {
      wrong += !std::isnan(float(back));
    } else {
      wrong += back.bits != bits;
    }
  }
  CHECK(wrong == 0);
  CHECK(bfloat16(std::bit_cast<float>(0x3F808000u)).bits == 0x3F80);  // half way, to even
  CHECK(bfloat16(std::bit_cast<float>(0x3F818000u)).bits == 0x3F82);
  CHECK(bfloat16(std::bit_cast<float>(0x3F808001u)).bits == 0x3F81);
  CHECK(bfloat16(std::bit_cast<float>(0x7F7FFFFFu)).bits == 0x7F80);  // to infinity
  CHECK(std::isnan(float(bfloat16(std::bit_cast<float>(0x7F800001u)))));
}
