// Which instructions the CPU backend uses.
#pragma once

#include <string>

namespace finetune {

// avx512_bf16: products of bf16 pairs in vector registers (VDPBF16PS); amx has them too.
enum class Isa { avx2, avx512, avx512_bf16, amx };

// The best that this machine has, or what the environment variable FINETUNE_ISA says (avx2, avx512,
// avx512_bf16, amx). The choice is made once a process, before the first kernel runs.
// Error(usage) for an unknown value or one that the machine lacks.
// In fp32 the last two compute as avx512 does.
Isa select_isa();

// Whether bf16 is multiplied as such, in tiles (bf16_gemm.h), and not rounded and multiplied in
// fp32.
bool multiplies_bf16(Isa isa);
// Whether that is faster than fp32: with AMX, and on AMD's processors, whose products of pairs come
// at the rate of other products (Intel's at half of it).
bool multiplies_bf16_faster(Isa isa);

const char* name_of(Isa isa);  // "AVX-512"

}  // namespace finetune
