// Attention and its gradients as cuDNN's graphs.
// Packed sequences (ragged tensors) of different lengths (a padding mask), dropout.
#pragma once

#include "ops/cuda/attention/cudnn_graph.h"
#include "ops/cuda/attention/fused_attention.h"

namespace finetune::cuda {

// Numbers that a call passes by value follow the tensors.
enum class CudnnScalar : int64_t { scale = int64_t(FusedTensor::count) + 1, hidden, kept, factor };

// A tensor's number in the graphs: 0 is nobody's.
constexpr int64_t number_of(FusedTensor t) {
  return int64_t(t) + 1;
}

// The graph for `shape`, of which `numbers` becomes the list of those that a call gives.
CudnnGraph attention_graph(const FusedShape& shape, std::vector<int64_t>& numbers);

}  // namespace finetune::cuda
