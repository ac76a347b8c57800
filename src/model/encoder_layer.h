// One encoder layer, forward and backward. Post-LayerNorm (Devlin et al., 2018; Hugging Face's
// BertLayer): middle = LN(x + dropout(dense(attention(x)))), output = LN(middle +
// dropout(dense(f(dense(middle))))). Norms may come before the blocks instead
// (passes/norm_before_layer.cpp).
//
// Under a sequence head the last layer is computed for first tokens only: keys and values for all
// T tokens, everything else for B rows. Rows R is T, or B there.
//
// A layer can be cut into V tensor shards, each with heads / V attention heads and I / V columns of
// the feed-forward. Sums over all heads or columns (the outputs of attention and feed-forward, the
// gradients of their inputs) add the shards' partials (tensor_sum.h). All other (R, H) tensors are
// computed completely by every tensor rank, with equal bits. With V = 1 there is no sum over
// shards.
#pragma once

#include <span>

#include "model/activations.h"
#include "model/config.h"
#include "model/device_batch.h"
#include "model/parameters.h"
#include "model/tensor_sum.h"
#include "ops/backend.h"

namespace finetune {

// The place of a tensor in every arena of the table; 0 rows: the table does not have the tensor.
struct Slot {
  int64_t offset = 0, rows = 0, cols = 0;
  DType dtype = DType::f32;
  Tensor in(float* arena) const {
    return rows == 0 ? Tensor{} : Tensor{arena + offset, dtype, rows, cols, cols};
  }
};
Slot slot_of(const ParameterTable& table, Role role, ParameterPart part, int64_t layer = 0,
             int shard = 0);

// The tensors of a layer's tensor shard, one of V.
struct LayerSlots {
  Slot qkv_weight;  // (3H/V, H)
  Slot qkv_bias;    // (1, 3H/V)
  // (H/V, H), (1, H/V), if relative positions have weights of their own.
  Slot position_key, position_key_bias, position_query, position_query_bias;
  Slot attention_weight;             // (H, H/V)
  Slot inner_weight, inner_bias;     // (I/V, H); gated: (2I/V, H)
  Slot output_weight;                // (H, I/V)
  Slot attention_bias, output_bias;  // (1, H), only in shard 0
  // Of the whole layer. No gamma if the layer lacks the norm, no beta if norms have no bias.
  Slot attention_gamma, attention_beta, output_gamma, output_beta;

  LayerSlots(const ParameterTable& table, int64_t layer, int shard = 0);
};

struct LayerDropout {
  Dropout attention, attention_output, output;
};

class RelativeTables;

// The position bias in a layer, or the table of relative positions; kAbsent: there is none, or its
// gradient is not wanted.
struct LayerBias {
  int64_t values = kAbsent;    // (heads/V, 2 * span - 1) of each shard held
  int64_t gradient = kAbsent;  // (heads/V, 2T), used by one shard after the other
  int64_t table = kAbsent;     // gradient of the table: (buckets, heads/V) of each shard held
  int64_t span = 0;
  // The table of relative positions (2 * span, H) after its norm; its gradient for each shard held.
  int64_t relative = kAbsent, relative_gradient = kAbsent;
  Dropout relative_dropout;
  const RelativeTables* tables = nullptr;
  const RelativeOffsets* buffers = nullptr;
  bool accumulate = false;  // add to the gradient, which has the sum over the layers above
};

// The operands of a pass over one layer.
struct LayerPass {
  Backend& backend;
  const EncoderConfig& config;
  const DeviceBatch& batch;
  std::span<const LayerSlots> shards;  // the shards held here, in order
  const LayerOffsets& offsets;
  const PartialOffsets& partials;
  LayerDropout dropout;
  int64_t tensor_shards = 1;  // V
  int64_t first_shard = 0;    // the number of the first shard held here
  TensorSum* sum = nullptr;   // only if V > 1
  bool first_only = false;
  float* memory = nullptr;  // the activation block
  LayerBias bias = {};
  bool accumulate = true;  // backward: add gradients to the old values, else overwrite them
  Tensor rotation = {};    // of queries and keys (Backend::rotate), if any
  int64_t window = -1;     // AttentionShape::window

  LayerPass with(const LayerOffsets& others) const {
    return {backend,     config, batch,      shards, others, partials,   dropout,  tensor_shards,
            first_shard, sum,    first_only, memory, bias,   accumulate, rotation, window};
  }
  // Whether attention reads a norm of the layer's input.
  bool norms_input() const {
    return config.layer.norm_before && shards[0].attention_gamma.rows > 0;
  }
  // Whether a bias's gradient (not that of query, key or value) is summed by the operation that
  // computes its rows, not by the weight gradient's product. A norm does so for the dense layer
  // before it. False for rows so wide that the sum would need a launch of its own anyway.
  bool sums_with_rows() const {
    const int64_t h = config.hidden_size;
    return backend.sums_columns() && !config.layer.norm_before && h <= kMostSummedColumns &&
           h % 8 == 0;
  }
  bool cut() const { return tensor_shards > 1; }
  int64_t shard_heads() const { return config.num_attention_heads / tensor_shards; }
  int64_t shard_width() const { return config.hidden_size / tensor_shards; }
  int64_t shard_inner() const { return config.intermediate_size / tensor_shards; }
  int64_t shard_inner_rows() const { return config.inner_rows() / tensor_shards; }
  int64_t rows() const { return first_only ? batch.sequences() : batch.tokens(); }
  RowNames names() const { return first_only ? batch.first_names() : batch.token_names(); }
  // (rows, cols) at `offset`, or absent.
  Tensor at(int64_t offset, int64_t rows, int64_t cols) const;
  // The same in the backend's activation_type.
  Tensor typed(int64_t offset, int64_t rows, int64_t cols) const;
  Tensor rounded(int64_t offset, int64_t rows, int64_t cols) const;  // in bf16
};

// Whether inference computes whole layers (Backend::has_layer) in two small buffers; never if they
// are cut into tensor shards.
bool has_whole_layers(const Backend& backend, const EncoderConfig& config,
                      int64_t tensor_shards = 1);

// Reads offsets.input, writes offsets.output and all other offsets that the plan has.
void layer_forward(const LayerPass& pass, float* weights);
// The same in inference, by the backend's operations for whole layers.
void whole_layer_forward(const LayerPass& pass, float* weights);

// Gradient buffers of the plan.
struct LayerGradients {
  int64_t gradient = kAbsent;  // (R, H) in: of the output; overwritten
  int64_t branch = kAbsent;    // (R, H)
  int64_t context = kAbsent;   // (R, H/V); one shard after the other uses it and the next two
  int64_t wide = kAbsent;
  int64_t attention_branch = kAbsent, qkv = kAbsent;  // see ActivationPlan
  int64_t query = kAbsent;                            // (B, H/V) where first_only
  int64_t input = kAbsent;   // (T, H) out: of the input; the same as `gradient` unless first_only
  int64_t normed = kAbsent;  // (T, H) of the output of a norm before a block

  static LayerGradients of(const ActivationPlan& plan, bool first_only);
};

// The two passes of a layer whose norms come before its blocks.
void norm_before_forward(const LayerPass& pass, float* weights);
void norm_before_backward(const LayerPass& pass, const LayerGradients& offsets, float* weights,
                          float* arena, bool input_wanted);

// Adds the layer's gradients to `arena`, or writes them there. With `input_wanted` false the
// gradient of the layer's input is not computed.
void layer_backward(const LayerPass& pass, const LayerGradients& offsets, float* weights,
                    float* arena, bool input_wanted);

}  // namespace finetune
