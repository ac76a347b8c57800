// Functions that a GPU computes in one instruction, for values that will be rounded to bf16.
// Denormal results are 0.
#pragma once

namespace finetune::cuda {

// 2^x, relative error 2^-22
__device__ inline float approximate_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x, relative error 2^-23
__device__ inline float approximate_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace finetune::cuda
