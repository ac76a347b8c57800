// bf16_gemm on tiles: matrix products with bf16 operands and fp32 sums.
// In the tile registers of AMX (Intel's Architecture Instruction Set Extensions reference, chapter
// 3) or by AVX-512's VDPBF16PS.
#pragma once

#include "ops/cpu/gemm/gemm.h"

namespace finetune::cpu {

// Makes ready the tile registers, once for the process. False where there are none. Needs AVX-512.
bool enable_tile_registers();
// Whether all products of tiles from now on are formed in these registers.
void use_tile_registers(bool use);

// As bf16_gemm(): operands that are fp32 in memory are rounded to bf16 on the way into the
// tiles. Each element of c is summed over K in an order that depends on K alone.
void bf16_gemm_tiles(const Product& product);

// Multiplications of bf16 in registers alone, on the calling thread: flop done.
double tile_spin(int64_t rounds);

}  // namespace finetune::cpu
