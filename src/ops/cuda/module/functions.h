// The CUDA module's table of functions (api.h).
#pragma once

#include "ops/cuda/module/api.h"

namespace finetune::cuda {

const Functions& functions();

}  // namespace finetune::cuda
