// The activation plan: where every intermediate result of a pass lies in one block of memory.
// Offsets follow from the configuration and the sizes of the micro-batch. The block has *slots*,
// each with one micro-batch's results that its backward pass needs, and *working memory*, which all
// passes share: gradients, and results that are not needed after a pass.
#pragma once

#include <cstdint>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/numeric/index_range.h"
#include "model/config.h"
#include "model/model_part.h"
#include "model/parameters.h"
#include "model/passes/activation_form.h"
#include "ops/scratch_sizes.h"
#include "ops/second_stream.h"

namespace finetune {

// Each number is a tensor's offset in floats from the block's start, or kAbsent if this pass does
// not have the tensor. Comments give the tensor's shape. Of the micro-batch, T is the
// number of tokens, B of sequences, M of scored tokens. Of the model, H is the hidden size, E the
// embedding size, I the intermediate size, V the number of tensor shards. R is the number of rows
// that a layer computes: T, but B in the last layer if the head reads each sequence's first token
// alone. Tensors marked * have the backend's activation_type. Those named `rounded` are bf16 copies
// that matrix products read; they are absent if that type is f32. All others are f32.
constexpr int64_t kAbsent = -1;

// The results of one tensor shard.
struct ShardOffsets {
  int64_t first_query = kAbsent;  // (B, H/V)* only where R is B
  int64_t qkv = kAbsent;          // (T, 3H/V)*, or (T, 2H/V) keys and values where R is B
  int64_t context = kAbsent;      // (R, H/V)* attention output
  int64_t log_sums = kAbsent;     // (heads/V, R)
  int64_t mask = kAbsent;         // of attention's dropout, if the backend keeps it
  int64_t inner = kAbsent;        // (R, I/V)* before the activation; (R, 2I/V) if it is gated
  int64_t activated = kAbsent;    // (R, I/V)* after it; all layers share a place unless it is kept
};

struct LayerOffsets {
  int64_t input = kAbsent;            // (T, H)
  int64_t input_rounded = kAbsent;    // (T, H)
  int64_t first = kAbsent;            // (B, H) first tokens' input; only where R is B
  std::vector<ShardOffsets> shards;   // the shards held here; in inference all share one place
  int64_t attention_sum = kAbsent;    // (R, H) attention's result; in training, plus the input
  int64_t attention_stats = kAbsent;  // (R, 2)
  int64_t middle = kAbsent;           // (R, H) after the attention's LayerNorm
  int64_t middle_rounded = kAbsent;   // (R, H)
  int64_t output_sum = kAbsent;       // (R, H) the feed-forward's; in training, plus `middle`
  int64_t output_stats = kAbsent;     // (R, 2)
  // Only if norms come before blocks (LayerBlock::norm_before). Then `middle` and attention_stats
  // belong to the norm before the feed-forward, and output_sum is kAbsent in training.
  int64_t normed = kAbsent;          // (T, H) after the norm before attention
  int64_t normed_rounded = kAbsent;  // (T, H)
  int64_t normed_stats = kAbsent;    // (T, 2)
  int64_t first_normed = kAbsent;    // (B, H) first tokens' rows of `normed`; only where R is B
  int64_t stream = kAbsent;          // (R, H) input plus attention
  int64_t output = kAbsent;          // (R, H)
  int64_t output_rounded = kAbsent;  // (R, H) in all layers but the last
};

// The partials of sums over tensor shards, one for each shard held here; empty unless V > 1. In a
// forward pass the first partial is in the sum's place, so for inference all[0] is kAbsent.
struct PartialOffsets {
  std::vector<int64_t> all;    // (T, H)
  std::vector<int64_t> first;  // (B, H) of queries' gradients, where the last layer's R is B
};

// The encoder layers that one pass computes, and whether it computes embeddings and head.
struct ModelChunk {
  IndexRange layers;
  bool embeddings = true, head = true;
  int64_t tensor_shards = 1, held_shards = 1;

  static ModelChunk whole(const EncoderConfig& config, int64_t tensor_shards = 1) {
    return {{0, config.num_hidden_layers}, true, true, tensor_shards, tensor_shards};
  }
  static ModelChunk of(const ModelPart& part, int64_t chunk);
};

// Places in the block for (T, H) tensors that wait in memory of the host for the backward pass
// (passes/offloaded_inputs.h). The i-th one that a forward pass writes is at place i % places. They
// are the embeddings' sum if the chunk has embeddings, each layer's input, and the output if a head
// reads all tokens. 0 places: nothing is offloaded.
struct InputRing {
  int64_t places = 0;
  int64_t at = 0, stride = 0;  // in floats: the ring's offset, the size of a place
  int64_t tensors = 0;         // the largest number of tensors of a chunk

  bool on() const { return places > 0; }
  int64_t floats() const { return places * stride; }
  int64_t host_floats(int64_t slots) const { return slots * tensors * stride; }
  int64_t of(int64_t tensor) const { return at + tensor % places * stride; }
  // For micro-batches of up to `tokens` tokens. The block has places for `horizon` + 1 tensors.
  // Returns no ring if `horizon` is 0, or if all tensors of a single slot have places.
  static InputRing make(const EncoderConfig& config, Head head, const ModelPart& part,
                        int64_t tokens, int64_t slots, int64_t horizon);
};

// The number of rows of H floats that stages exchange behind the (T, H) tensor: the table of the
// position bias or of relative positions upwards, its gradient downwards (passes/position_bias.h).
// 0 if the model has neither. `held`: the number of tensor shards held here.
int64_t carried_rows(const EncoderConfig& config, int64_t tensor_shards, int64_t held);
// Floats of the (T, H) tensor between layers, with those rows.
int64_t state_floats(const EncoderConfig& config, const ModelChunk& chunk, int64_t tokens);

// Working memory of a layer with relative positions. P of the table's 2 * span rows are in use. The
// gradients are for training only.
struct RelativeOffsets {
  int64_t dropped = kAbsent;                    // (P, H) after the layer's dropout
  int64_t keys = kAbsent, queries = kAbsent;    // (P, H/V) the table's projections
  int64_t scores = kAbsent, score_floats = 0;   // (some heads, T, longest)
  int64_t dkeys = kAbsent, dqueries = kAbsent;  // (P, H/V)
  int64_t gradient = kAbsent;                   // (P, H)
};

// The limits for the layers' weight gradients.
SecondStreamLimits second_stream_limits(const EncoderConfig& config, int64_t tokens);
// What passes of the layers need beside their results, for T tokens in training (0: no training)
// and up to `most` tokens in any micro-batch.
ScratchSizes scratch_sizes(const EncoderConfig& config, DType type, int64_t tokens, int64_t most);

struct ActivationPlan {
  int64_t bias_table = kAbsent;       // the table that a chunk without embeddings received
  int64_t embedding_sum = kAbsent;    // (T, E)
  int64_t embedding_stats = kAbsent;  // (T, 2)
  int64_t projected = kAbsent;        // (T, E) input of the embeddings' projection, if any
  std::vector<LayerOffsets> layers;   // of the chunk
  int64_t final_normed = kAbsent;     // (R, H) after the norm that follows the last layer, if any
  int64_t final_stats = kAbsent;      // (R, 2)
  int64_t mean = kAbsent;             // (B, H) mean of each text's tokens, if the head reads it
  int64_t pooler_input = kAbsent;     // (B or T, H) before the head's activation
  int64_t head_sum = kAbsent;         // (B or T, H) after it, if a LayerNorm follows
  int64_t head_stats = kAbsent;       // (B or T, 2)
  int64_t pooled = kAbsent;           // (B or T, H) after activation, norm and dropout
  int64_t scored = kAbsent;           // (M, H) the encoder's output; later its gradient
  int64_t transformed = kAbsent;      // (M, E) before the activation
  int64_t scored_sum = kAbsent;       // (M, E) after it
  int64_t scored_stats = kAbsent;     // (M, 2)
  int64_t scored_states = kAbsent;    // (M, E) the decoder's input
  int64_t logits = kAbsent;           // (B, T or M, outputs)

  // Working memory of the position bias: its values (heads/V, 2 * span - 1) for each shard held,
  // and attention's gradient of them (heads/V, 2T), which one shard uses after the other.
  int64_t bias_values = kAbsent;
  int64_t bias_gradient = kAbsent;
  // The table of relative positions after its norm, (2 * span, H), and the norm's statistics,
  // (2 * span, 2). A chunk with the embeddings computes them in each pass.
  int64_t relative = kAbsent, relative_stats = kAbsent;
  RelativeOffsets relative_layer;

  // The convolution beside the first layer: its product, the sum with the layer's output, and the
  // norm's statistics. In training they are in the slot.
  int64_t convolved = kAbsent, convolution_sum = kAbsent, convolution_stats = kAbsent;
  // Its working memory: the product's operand (T, H * taps), the product's gradient (T, H), and the
  // gradient of the layer's input (T, H).
  int64_t taps = kAbsent, convolved_gradient = kAbsent, convolution_input = kAbsent;

  // Working memory: the encoder's output after a token head's dropout, which the backward pass
  // computes again.
  int64_t dropped = kAbsent;  // (T, H)

  // Working memory: gradients, each with respect to the tensor named in its comment. All layers and
  // tensor shards use the same memory, one after the other.
  int64_t gradient = kAbsent;            // (T, H) of a layer's output, then of its input
  int64_t projected_gradient = kAbsent;  // (T, E) of `projected`
  int64_t normed_gradient = kAbsent;     // (T, H) of the output of a norm before a block
  int64_t mean_gradient = kAbsent;       // (B, H) of `mean`
  int64_t first_gradient = kAbsent;      // (B, H) of the last layer's output where R is B
  int64_t query_gradient = kAbsent;      // (B, H/V)*
  int64_t branch_gradient = kAbsent;  // (R, H)* of a block's result before dropout; the head's, too
  int64_t context_gradient = kAbsent;  // (R, H/V)* of `context`
  int64_t wide_gradient = kAbsent;     // (R, I/V)* of `inner`
  // Of attention's result before dropout, (R, H)*, and of qkv. In f32 or without a second stream
  // they are in the places of branch_gradient and wide_gradient.
  int64_t attention_branch_gradient = kAbsent;
  int64_t qkv_gradient = kAbsent;
  PartialOffsets partials;

  // In the ring: the number of the first layer's input, and the pass's number of tensors.
  // spare_output: (T, H) of working memory that is free while a layer is computed again.
  int64_t first_input = 0, ring_tensors = 0, spare_output = kAbsent;

  // Floats of the slot and of working memory, and where the later of the two ends in the block.
  int64_t kept = 0, working = 0, floats = 0;

  // The plan of training. It keeps each layer's results for backward passes; with `recompute` only
  // each layer's input, and all layers share the offsets of the rest, in working memory. The slot
  // begins at float `slot_at`, working memory at `working_at`, or behind the slot if that is
  // kAbsent; both are multiples of 16. Tensors of the ring are not in the slot. `scored`: M for a
  // masked head; kAbsent: the number of tokens. With `activated`, results of the activation are
  // kept, too; else the backward pass computes them again, with the same bits.
  static ActivationPlan training(const EncoderConfig& config, Head head, const ModelChunk& chunk,
                                 ActivationForm form, int64_t tokens, int64_t sequences,
                                 bool recompute, int64_t slot_at = 0, int64_t working_at = kAbsent,
                                 const InputRing& ring = {}, int64_t scored = kAbsent,
                                 bool activated = false);
  // Floats of the block for a part of the model, with room for its largest chunk in each slot.
  // `horizon`: see InputRing::make().
  static int64_t training_floats(const EncoderConfig& config, Head head, const ModelPart& part,
                                 ActivationForm form, int64_t tokens, int64_t sequences,
                                 bool recompute, int64_t slots, int64_t horizon = 0,
                                 bool activated = false);
  // Whether training keeps the results of the activation function: never with `recompute` or a
  // gated activation, else if the block then has at most `bytes`.
  static bool keeps_activated(const EncoderConfig& config, Head head, const ModelPart& part,
                              ActivationForm form, int64_t tokens, int64_t sequences,
                              bool recompute, int64_t slots, int64_t bytes);
  // The plan of inference: few buffers that all layers share, or two if the backend computes whole
  // layers (Backend::has_layer). All are working memory, from the block's start.
  static ActivationPlan inference(const EncoderConfig& config, Head head, const ModelChunk& chunk,
                                  DType type, int64_t tokens, int64_t sequences, bool whole_layers,
                                  int64_t scored = kAbsent);
  static int64_t inference_floats(const EncoderConfig& config, Head head, const ModelPart& part,
                                  DType type, int64_t tokens, int64_t sequences, bool whole_layers);
};

}  // namespace finetune
