// Tensor-core products of small bf16 matrices, and asynchronous copies into shared memory.
// PTX's mma.m16n8k16, ldmatrix and cp.async. Every lane of a warp takes part in products.
// With g = lane / 4 and t = lane % 4 a lane holds, two neighbours in a word:
//   a (16, 16): rows g, g + 8, g, g + 8 at columns 2t, 2t, 2t + 8, 2t + 8
//   b (16, 8):  column g at rows 2t, 2t + 8
//   c (16, 8), fp32: row g at columns 2t, 2t + 1, then row g + 8
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace finetune::cuda {

// c += a b
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads four (8, 8) matrices from shared memory; lanes 0 to 7, 8 to 15, ... give the addresses of
// their rows, multiples of 16 bytes. Each lane gets row g at columns 2t, 2t + 1 of each.
__device__ inline void load_matrices(uint32_t (&m)[4], const __nv_bfloat16* row) {
  const auto address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

// The same transposed: each lane gets column g at rows 2t, 2t + 1 of each.
__device__ inline void load_transposed(uint32_t (&m)[4], const __nv_bfloat16* row) {
  const auto address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

// Copies 16 bytes to shared memory, or zeros if there is nothing to copy; `from` must then still be
// a valid device address. The bytes are visible to this thread after wait_for_copies, and to others
// after a barrier following it.
__device__ inline void copy_async(__nv_bfloat16* to, const void* from, bool something) {
  const auto address = uint32_t(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(address), "l"(__cvta_generic_to_global(from)), "r"(something ? 16 : 0)
               : "memory");
}
__device__ inline void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits for all but the last kGroups groups.
template <int kGroups>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace finetune::cuda
