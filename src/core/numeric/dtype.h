// Element types and their conversions to float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace finetune {

enum class DType : uint8_t { f32, bf16, f16, f64, i32, i64, u8 };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

// bfloat16: the upper half of an IEEE float, rounded to nearest even.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  constexpr explicit bfloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) {
      bits = uint16_t((u >> 16) | 0x40);  // keep NaN a NaN
    } else {
      bits = uint16_t((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
    }
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

float half_to_float(uint16_t half);   // IEEE binary16
uint16_t float_to_half(float value);  // to nearest even; overflow becomes infinity

}  // namespace finetune
