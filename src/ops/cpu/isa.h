// Chooses the instruction set of the CPU backend.
#pragma once

#include <string>

namespace finetune {

// avx512_bf16: products of bf16 pairs in vector registers (VDPBF16PS), which amx includes.
enum class Isa { avx2, avx512, avx512_bf16, amx };

// The best instruction set of this machine, or the one named by the environment variable
// FINETUNE_ISA (avx2, avx512, avx512_bf16, amx). Chosen once per process, before the first kernel
// runs. Error(usage) if it is unknown or not available. In fp32 the last two compute as avx512
// does.
Isa select_isa();

// Whether bf16 is multiplied natively, in tiles (bf16_gemm.h), instead of in fp32 after rounding.
bool multiplies_bf16(Isa isa);
// Whether that is faster than fp32: with AMX, and on AMD's processors, where VDPBF16PS has the rate
// of other multiplications (on Intel's it has half of it).
bool multiplies_bf16_faster(Isa isa);

const char* name_of(Isa isa);  // "AVX-512"

}  // namespace finetune
