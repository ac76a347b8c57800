// Loads and stores of fp32 or bf16 elements as floats, one, four or eight at a time. Eight
// neighbours are 16 bytes of bf16, or 32 of fp32.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

constexpr int kPack = 8, kFour = 4;

__device__ inline float as_float(float value) {
  return value;
}
__device__ inline float as_float(bfloat16 value) {
  return __uint_as_float(uint32_t(value.bits) << 16);
}

// To nearest, ties to even: one instruction of the GPU.
__device__ inline uint32_t bf16_bits(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
__device__ inline void put(float* to, float value) {
  *to = value;
}
__device__ inline void put(bfloat16* to, float value) {
  to->bits = uint16_t(bf16_bits(value));
}

template <typename T>
__device__ inline void load(const T* from, float (&values)[1]) {
  values[0] = as_float(*from);
}
__device__ inline void load(const float* from, float (&values)[kFour]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  values[0] = four.x;
  values[1] = four.y;
  values[2] = four.z;
  values[3] = four.w;
}
__device__ inline void load(const float* from, float (&values)[kPack]) {
  for (int i = 0; i < 2; ++i) {
    const float4 four = reinterpret_cast<const float4*>(from)[i];
    values[4 * i] = four.x;
    values[4 * i + 1] = four.y;
    values[4 * i + 2] = four.z;
    values[4 * i + 3] = four.w;
  }
}
__device__ inline void load(const bfloat16* from, float (&values)[kPack]) {
  const uint4 eight = *reinterpret_cast<const uint4*>(from);
  const uint32_t words[] = {eight.x, eight.y, eight.z, eight.w};
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
  }
}

template <typename T>
__device__ inline void store(T* to, const float (&values)[1]) {
  put(to, values[0]);
}
__device__ inline void store(float* to, const float (&values)[kFour]) {
  *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
}
__device__ inline void store(bfloat16* to, const float (&values)[kFour]) {
  *reinterpret_cast<uint2*>(to) = make_uint2(bf16_bits(values[0]) | bf16_bits(values[1]) << 16,
                                             bf16_bits(values[2]) | bf16_bits(values[3]) << 16);
}
__device__ inline void store(float* to, const float (&values)[kPack]) {
  for (int i = 0; i < 2; ++i) {
    const float* four = values + 4 * i;
    reinterpret_cast<float4*>(to)[i] = make_float4(four[0], four[1], four[2], four[3]);
  }
}
__device__ inline void store(bfloat16* to, const float (&values)[kPack]) {
  uint32_t words[4];
  for (int i = 0; i < 4; ++i) {
    words[i] = bf16_bits(values[2 * i]) | bf16_bits(values[2 * i + 1]) << 16;
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

// Calls run(T()) with the type of the elements.
template <typename Run>
void for_type(bool bf16, Run&& run) {
  bf16 ? run(bfloat16()) : run(float());
}

__host__ __device__ inline bool begins_pack(const void* x) {
  return reinterpret_cast<uintptr_t>(x) % 16 == 0;
}

// Whether x's rows consist of packs aligned to 16 bytes. True for an absent matrix.
template <typename T>
bool packs(const MatrixOf<T>& x) {
  return !x.data ||
         (begins_pack(x.data) && x.stride * int64_t(sizeof(T)) % 16 == 0 && x.cols % kPack == 0);
}

// Calls run(std::integral_constant<int, N>()) with the number of elements per thread: kPack if all
// matrices have packs, else 1.
template <typename Run, typename... Matrices>
void for_width(Run&& run, const Matrices&... matrices) {
  if ((packs(matrices) && ...)) return run(std::integral_constant<int, kPack>());
  run(std::integral_constant<int, 1>());
}

}  // namespace finetune::cuda
