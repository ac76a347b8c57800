// In place of cudnn_attention.cu, in a build without cuDNN's headers, or with older ones.
#include <stdexcept>

#include "ops/cuda/attention/fused_attention.h"

namespace finetune::cuda {

std::unique_ptr<FusedLibrary> open_fused_library() {
  throw std::runtime_error("this build had no cudnn.h that is new enough");
}

}  // namespace finetune::cuda
