// A matrix's transpose in fp32.
#pragma once

#include <cstdint>

namespace finetune::cpu {

// to (cols, ldt) = from (rows, cols)^T, of which each row's first `rows` elements are written.
void transpose(const float* from, int64_t stride, int64_t rows, int64_t cols, float* to,
               int64_t ldt);

}  // namespace finetune::cpu
