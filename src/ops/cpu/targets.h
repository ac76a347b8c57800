// Before any of Highway's headers: which vector instruction sets the kernels are compiled for.
#pragma once

// AVX2 and AVX-512 (Skylake and later) alone. The program itself is built for x86-64-v3, whose
// processors all have AES and carry-less multiplication, which Highway wants to see for AVX2.
#define HWY_DISABLE_PCLMUL_AES 1
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3))
