// bf16_gemm on tiles: matrix products with bf16 operands and fp32 sums. They use AMX tile registers
// (Intel's Architecture Instruction Set Extensions reference, chapter 3) or AVX-512's VDPBF16PS.
#pragma once

#include "ops/cpu/gemm/gemm.h"

namespace finetune::cpu {

// Enables the tile registers for the process. Returns false if there are none. Needs AVX-512.
bool enable_tile_registers();
// Whether later products use tile registers.
void use_tile_registers(bool use);

// As bf16_gemm(): fp32 operands are rounded to bf16 while they are packed. Each element of c is
// summed over K in an order that depends only on K.
void bf16_gemm_tiles(const Product& product);

// Benchmark: multiplies bf16 in registers only, on the calling thread; returns the number of flops.
double tile_spin(int64_t rounds);

}  // namespace finetune::cpu
