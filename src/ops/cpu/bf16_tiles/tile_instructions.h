// The instructions of tile registers (AMX). A test replaces this header by one with the same
// instructions in software (tests/unit/ops/software_tiles).
#pragma once

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace finetune::cpu {

// Whether they can be used: the processor has them, and the kernel grants the process permission.
// Reads cpuid, since clang 14 has no __builtin_cpu_supports("amx-tile").
inline bool has_tile_instructions() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  constexpr unsigned kTiles = 1u << 24, kTilesOfBf16 = 1u << 22;  // bits of edx
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kTiles) &&
         (edx & kTilesOfBf16) && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// GCC does not know that tiles are loaded from memory: finish pending writes before this.
inline void before_tile_loads() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace finetune::cpu
