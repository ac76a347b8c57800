// src/ops/cuda/kernels/approximate.h on the host, in its place.
// Results are as wrong as PTX's documentation lets a GPU's be, or a little more.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace finetune::cuda {

namespace host {

// Without the lowest `bits` of its mantissa, so that it is too small; 0 if it is not normal.
inline float truncated(double exact, unsigned bits) {
  float value = float(exact);
  if (std::fabs(value) < 0x1p-126f) return std::copysign(0.0f, value);
  if (!std::isfinite(value)) return value;
  unsigned word;
  std::memcpy(&word, &value, sizeof word);
  return __uint_as_float(word >> bits << bits);
}

}  // namespace host

inline float approximate_exp2(float x) {
  return host::truncated(std::exp2(double(x)), 3);
}
inline float approximate_reciprocal(float x) {
  return host::truncated(1.0 / double(x), 2);
}

}  // namespace finetune::cuda
