// Attention and its gradients as cuDNN graphs. They support packed sequences (ragged tensors) of
// different lengths (a padding mask), and dropout.
#pragma once

#include "ops/cuda/attention/cudnn_graph.h"
#include "ops/cuda/attention/fused_attention.h"

namespace finetune::cuda {

// Scalars that a call passes by value; their numbers follow the tensors'.
enum class CudnnScalar : int64_t { scale = int64_t(FusedTensor::count) + 1, hidden, kept, factor };

// A tensor's number in the graphs; 0 is unused.
constexpr int64_t number_of(FusedTensor t) {
  return int64_t(t) + 1;
}

// Returns the graph for `shape`; sets `numbers` to the tensors and scalars that a call provides.
CudnnGraph attention_graph(const FusedShape& shape, std::vector<int64_t>& numbers);

}  // namespace finetune::cuda
