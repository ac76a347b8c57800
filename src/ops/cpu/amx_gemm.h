// Matrix products with bf16 operands and fp32 sums on AMX tiles (Intel's Architecture Instruction
// Set Extensions reference, chapter 3).
#pragma once

#include "ops/cpu/gemm.h"

namespace finetune::cpu {

// Asks the kernel for the tile registers, once for the process. False where there are none.
bool amx_enable();

// As multiply_bf16(): operands that are fp32 in memory are rounded to bf16 on the way into the
// tiles. Each element of c is summed over K in an order that depends on K alone.
void amx_multiply(const Product& product);

// Multiplications of tiles in registers alone, on the calling thread: flop done.
double amx_spin(int64_t rounds);

}  // namespace finetune::cpu
