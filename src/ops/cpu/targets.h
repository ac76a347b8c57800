// Include before Highway's headers: selects the instruction sets to compile kernels for.
#pragma once

// Only AVX2 and AVX-512 (Skylake and later). Highway's AVX2 target requires AES and carry-less
// multiplication, which the program's baseline, x86-64-v3, does not imply although all its
// processors have them.
#define HWY_DISABLE_PCLMUL_AES 1
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3))
