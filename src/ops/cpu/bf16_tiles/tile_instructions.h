// The instructions of tile registers (AMX). A test replaces this header by one with the same
// instructions in software (tests/unit/ops/software_tiles).
#pragma once

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace finetune::cpu {

// Whether they can be used: the processor has them, and the kernel grants the process permission.
inline bool has_tile_instructions() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// GCC does not know that tiles are loaded from memory: finish pending writes before this.
inline void before_tile_loads() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace finetune::cpu
