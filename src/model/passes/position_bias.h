// The position bias, or the scores by relative position, that attention adds in all layers.
// The table is a parameter of the embeddings. Tensor shards cut the bias's table by heads; each
// shard has a whole table of relative positions, and its own gradient of it. A chunk (consecutive
// layers of one process) without embeddings receives the table after its input rows, and sends it
// on after its output rows (carried_rows). In the backward pass of a micro-batch each chunk adds
// its layers' gradients of the table, last layer first, and sends the sum to the chunk before it;
// the chunk with the embeddings adds it to the table's gradient. So the bits are those of one
// chunk.
#pragma once

#include <vector>

#include "model/activations.h"
#include "model/encoder_layer.h"
#include "model/passes/ends.h"
#include "model/positions/relative_positions.h"

namespace finetune {

class SharedPositionBias {
 public:
  SharedPositionBias() = default;  // for a model without either
  // `sum` adds over tensor shards, if there are several.
  SharedPositionBias(const ParameterTable& table, const EncoderConfig& config,
                     const ModelPart& part, TensorSum* sum);
  // For texts of up to `tokens` tokens.
  void reserve(Backend& backend, const EncoderConfig& config, int64_t tokens) {
    relative_tables_ = RelativeTables(backend, config, tokens);
  }

  // Before the layers of a forward pass: keeps the table that came with the input, copies it behind
  // the output, and computes the values for this micro-batch.
  LayerBias forward(const EndPass& pass, const ModelChunk& of) const;
  // Before the layers of a backward pass: computes the values again.
  LayerBias before_backward(const EndPass& pass, const ModelChunk& of, bool trained) const;
  // After them, in the chunk with the embeddings: computes the table's gradient.
  void after_backward(const EndPass& pass, float* arena, bool accumulate) const;

 private:
  // The i-th held shard's table or gradient: at `place`, or carried behind the (T, H) tensor there.
  Tensor at(const EndPass& pass, int64_t place, size_t i) const;
  Tensor carried(const EndPass& pass, int64_t place, size_t i) const;
  Tensor table(const EndPass& pass, const ModelChunk& of, size_t i) const;
  LayerBias compute_values(const EndPass& pass, const ModelChunk& of) const;
  // The same for relative positions.
  LayerBias relative_forward(const EndPass& pass, const ModelChunk& of) const;
  LayerBias normed_table(const EndPass& pass, const ModelChunk& of) const;
  void relative_after_backward(const EndPass& pass, float* arena, bool accumulate) const;

  std::vector<Slot> tables_;  // of each shard held; empty slots without embeddings
  int64_t heads_ = 0;         // of a shard
  RelativeTables relative_tables_;
  Slot relative_, relative_gamma_, relative_beta_;  // none without embeddings
  int64_t held_shards_ = 1;
  TensorSum* sum_ = nullptr;
};

}  // namespace finetune
