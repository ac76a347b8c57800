// The position bias that attention adds in all layers (ops/operands.h). Its table is a parameter of
// the embeddings, cut by heads into tensor shards. A chunk without embeddings gets the table behind
// its input, in rows of their own (carried_rows), and hands it on behind its output. Downwards the
// gradient goes the same way: for each micro-batch a sum over the layers from the top down, which
// the chunk with the embeddings adds to the table's gradient. So bits are those of one chunk.
#pragma once

#include <vector>

#include "model/activations.h"
#include "model/encoder_layer.h"
#include "model/passes/ends.h"

namespace finetune {

class SharedPositionBias {
 public:
  SharedPositionBias() = default;  // there is none
  SharedPositionBias(const ParameterTable& table, const EncoderConfig& config,
                     const ModelPart& part);

  // Before the layers of a forward pass: keeps the table that came with the input, copies it behind
  // the output, and computes the values for this micro-batch.
  LayerBias forward(const EndPass& pass, const ModelChunk& of) const;
  // Before the layers of a backward pass: computes the values again.
  LayerBias before_backward(const EndPass& pass, const ModelChunk& of, bool trained) const;
  // After them, in the chunk with the embeddings: the table's gradient.
  void after_backward(const EndPass& pass, float* arena, bool accumulate) const;

 private:
  // Of the i-th shard held: what is at `place`, and what is carried behind the rows there.
  Tensor at(const EndPass& pass, int64_t place, size_t i) const;
  Tensor carried(const EndPass& pass, int64_t place, size_t i) const;
  Tensor table(const EndPass& pass, const ModelChunk& of, size_t i) const;
  LayerBias compute_values(const EndPass& pass, const ModelChunk& of) const;

  std::vector<Slot> tables_;  // of each shard held; empty slots without embeddings
  int64_t heads_ = 0;         // of a shard
};

}  // namespace finetune
