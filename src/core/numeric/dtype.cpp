// Conversions between binary16 (half precision) and float.
#include "core/numeric/dtype.h"

#include <cmath>

namespace finetune {

float half_to_float(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 31u;
  uint32_t mantissa = half & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float value = float(mantissa) * 0x1p-24f;
  return sign ? -value : value;
}

uint16_t float_to_half(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t((u >> 16) & 0x8000u);
  u &= 0x7FFFFFFFu;
  if (u > 0x7F800000u) return uint16_t(sign | 0x7E00u);
  if (u >= 0x477FF000u) return uint16_t(sign | 0x7C00u);  // rounds past 65504
  if (u < 0x38800000u) {                                  // subnormal or zero in binary16
    float magnitude = std::bit_cast<float>(u) * 0x1p24f;
    return uint16_t(sign | uint16_t(std::lrintf(magnitude)));
  }
  uint32_t rounded = u + 0xFFFu + ((u >> 13) & 1u);
  return uint16_t(sign | uint16_t((rounded - 0x38000000u) >> 13));
}

}  // namespace finetune
