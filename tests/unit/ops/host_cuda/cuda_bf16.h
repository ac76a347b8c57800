// CUDA's bf16 as far as src/ops/cuda uses it.
#pragma once

#include "core/numeric/dtype.h"

struct __nv_bfloat16 {
  unsigned short bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {finetune::bfloat16(value).bits};
}
inline float __bfloat162float(__nv_bfloat16 value) {
  finetune::bfloat16 out;
  out.bits = value.bits;
  return float(out);
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return value.bits;
}
