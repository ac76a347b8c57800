// src/ops/cuda/attention/mma.h on the host, in its place.
// The same fragments as PTX's documentation has them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace finetune::cuda {

namespace host {

// Everybody's `mine`, which stays where it is until all have called `release`.
template <typename T>
struct Warp {
  const uint64_t* addresses;
  explicit Warp(const T& mine)
      : addresses(host_cuda::exchange(reinterpret_cast<uintptr_t>(&mine))) {}
  ~Warp() { __syncwarp(); }
  const T& of(unsigned lane) const { return *reinterpret_cast<const T*>(addresses[lane]); }
};

inline float low(uint32_t pair) {
  return __uint_as_float(pair << 16);
}
inline float high(uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}

}  // namespace host

inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  struct Operands {
    uint32_t a[4], b[2];
  };
  const Operands mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const host::Warp<Operands> warp(mine);
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned lower = i / 2, column = 2 * t + i % 2;  // of this element
    float sum = 0;
    for (unsigned k = 0; k < 16; k += 2) {
      const uint32_t left = warp.of(g * 4 + k % 8 / 2).a[lower + k / 8 * 2];
      const uint32_t right = warp.of(column * 4 + k % 8 / 2).b[k / 8];
      sum += host::low(left) * host::low(right) + host::high(left) * host::high(right);
    }
    c[i] += sum;
  }
}

namespace host {

inline uint32_t pair(const __nv_bfloat16* first, const __nv_bfloat16* second) {
  return uint32_t(first->bits) | uint32_t(second->bits) << 16;
}

template <bool kTransposed>
void load(uint32_t (&m)[4], const __nv_bfloat16* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) __builtin_trap();
  const Warp<const __nv_bfloat16*> warp(row);
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    auto element = [&](unsigned r, unsigned c) { return warp.of(i * 8 + r) + c; };
    m[i] = kTransposed ? pair(element(2 * t, g), element(2 * t + 1, g))
                       : pair(element(g, 2 * t), element(g, 2 * t + 1));
  }
}

}  // namespace host

inline void load_matrices(uint32_t (&m)[4], const __nv_bfloat16* row) {
  host::load<false>(m, row);
}
inline void load_transposed(uint32_t (&m)[4], const __nv_bfloat16* row) {
  host::load<true>(m, row);
}

namespace host {

// A thread's asynchronous copies: they arrive only when waited for.
struct Copies {
  struct Copy {
    void* to;
    const void* from;  // null: zeros
  };
  std::vector<std::vector<Copy>> groups{1};  // the last is not ended
};
inline Copies& copies() {
  static Copies all[1024];
  return all[threadIdx.x];
}

}  // namespace host

inline void copy_async(__nv_bfloat16* to, const void* from, bool something) {
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    __builtin_trap();
  }
  host::copies().groups.back().push_back({to, something ? from : nullptr});
}
inline void end_copy_group() {
  host::copies().groups.emplace_back();
}
template <int kGroups>
void wait_for_copies() {
  auto& groups = host::copies().groups;
  for (; groups.size() > kGroups + 1; groups.erase(groups.begin())) {
    for (const auto& copy : groups.front()) {
      copy.from ? std::memcpy(copy.to, copy.from, 16) : std::memset(copy.to, 0, 16);
    }
  }
}

}  // namespace finetune::cuda
