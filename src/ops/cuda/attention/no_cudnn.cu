// Replaces cudnn_attention.cu in a build without cuDNN's headers, or with too old ones.
#include <stdexcept>

#include "ops/cuda/attention/fused_attention.h"

namespace finetune::cuda {

std::unique_ptr<FusedLibrary> open_fused_library() {
  throw std::runtime_error("the program was built without a recent cudnn.h");
}

}  // namespace finetune::cuda
