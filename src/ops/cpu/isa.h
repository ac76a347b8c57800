// Which instructions the CPU backend uses.
#pragma once

#include <string>

namespace finetune {

enum class Isa { avx2, avx512, amx };

// The best that this machine has, or what the environment variable FINETUNE_ISA says (avx2, avx512,
// amx). The choice is made once a process, before the first kernel runs, and binds the vector
// kernels and oneDNN alike. Error(usage) for an unknown value or one that the machine lacks. In
// fp32 amx computes as avx512 does.
Isa select_isa();

const char* name_of(Isa isa);  // "AVX-512"

}  // namespace finetune
