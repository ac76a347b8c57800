// The activation plan: where every intermediate result of a pass lies in one block of memory.
// Of forward and backward pass, by formula from the configuration and the sizes of the micro-batch.
// The block has *slots*, each with what the backward pass of one micro-batch needs, and *working
// memory*, which all passes share: gradients, and what is dead when a pass ends.
#pragma once

#include <cstdint>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/numeric/index_range.h"
#include "model/config.h"
#include "model/model_part.h"
#include "model/parameters.h"
#include "model/passes/activation_form.h"
#include "ops/second_stream.h"

namespace finetune {

// Places in the block, in floats from its start; kAbsent: not there in this mode. T tokens, B
// sequences, M scored tokens, H hidden, E embedding size, I intermediate, V tensor shards; R is T,
// or B in the last layer under a sequence head, which is computed for first tokens only. What is
// marked * has the backend's activation_type; `rounded` is in bf16, for products, and absent where
// that type is f32. All else is f32.
constexpr int64_t kAbsent = -1;

// Of one tensor shard.
struct ShardOffsets {
  int64_t first_query = kAbsent;  // (B, H/V)* only where R is B
  int64_t qkv = kAbsent;          // (T, 3H/V)*, or (T, 2H/V) keys and values where R is B
  int64_t context = kAbsent;      // (R, H/V)* attention output
  int64_t log_sums = kAbsent;     // (heads/V, R)
  int64_t mask = kAbsent;         // of attention's dropout, where the backend keeps it
  int64_t inner = kAbsent;        // (R, I/V)* before the activation; (R, 2I/V) of a gated one
  int64_t activated = kAbsent;    // (R, I/V)* after it; of all at one place unless it is kept
};

struct LayerOffsets {
  int64_t input = kAbsent;            // (T, H)
  int64_t input_rounded = kAbsent;    // (T, H)
  int64_t first = kAbsent;            // (B, H) first tokens' input; only where R is B
  std::vector<ShardOffsets> shards;   // those held here; in inference all at one place
  int64_t attention_sum = kAbsent;    // (R, H) projected context; when kept, plus residual
  int64_t attention_stats = kAbsent;  // (R, 2)
  int64_t middle = kAbsent;           // (R, H) after the attention's LayerNorm
  int64_t middle_rounded = kAbsent;   // (R, H)
  int64_t output_sum = kAbsent;       // (R, H)
  int64_t output_stats = kAbsent;     // (R, 2)
  // Only where norms come before blocks (LayerBlock::norm_before); `middle` and its statistics are
  // then those of the norm before the feed-forward, and output_sum is kAbsent in training.
  int64_t normed = kAbsent;          // (T, H) after the norm before attention
  int64_t normed_rounded = kAbsent;  // (T, H)
  int64_t normed_stats = kAbsent;    // (T, 2)
  int64_t first_normed = kAbsent;    // (B, H) first tokens' rows of it; only where R is B
  int64_t stream = kAbsent;          // (R, H) input plus attention
  int64_t output = kAbsent;          // (R, H)
  int64_t output_rounded = kAbsent;  // (R, H) of all but the last layer
};

// Where the partials of sums over tensor shards are, one of each shard held here: none unless V
// > 1. The first of a forward pass is in the sum's own place, in inference `all` has none.
struct PartialOffsets {
  std::vector<int64_t> all;    // (T, H)
  std::vector<int64_t> first;  // (B, H) of queries' gradients, where the last layer's R is B
};

// Encoder layers that one pass computes, and what of the model's ends is with them.
struct ModelChunk {
  IndexRange layers;
  bool embeddings = true, head = true;
  int64_t tensor_shards = 1, held_shards = 1;

  static ModelChunk whole(const EncoderConfig& config, int64_t tensor_shards = 1) {
    return {{0, config.num_hidden_layers}, true, true, tensor_shards, tensor_shards};
  }
  static ModelChunk of(const ModelPart& part, int64_t chunk);
};

// Tensors (T, H) that wait in memory of the host for the backward pass (passes/offloaded_inputs.h):
// number i of a pass, in the order in which its forward pass writes them, is at place i % places of
// the block. They are the sum of the embeddings where the chunk has them, each layer's input, and
// the output under a token head. No places: none waits there.
struct InputRing {
  int64_t places = 0;
  int64_t at = 0, stride = 0;  // floats: where the ring begins; of a place
  int64_t tensors = 0;         // the most of a chunk

  bool on() const { return places > 0; }
  int64_t floats() const { return places * stride; }
  int64_t host_floats(int64_t slots) const { return slots * tensors * stride; }
  int64_t of(int64_t tensor) const { return at + tensor % places * stride; }
  // For micro-batches of up to T tokens. `horizon` + 1 layers' inputs are in the block; 0, or so
  // many that all are: no ring.
  static InputRing make(const EncoderConfig& config, Head head, const ModelPart& part,
                        int64_t tokens, int64_t slots, int64_t horizon);
};

// Rows of H floats behind what goes from stage to stage, with the table of the position bias or of
// relative positions upwards and its gradient downwards (passes/position_bias.h); 0: there is
// neither. `held`: tensor shards.
int64_t carried_rows(const EncoderConfig& config, int64_t tensor_shards, int64_t held);
// Floats of what layers hand on, those rows included.
int64_t state_floats(const EncoderConfig& config, const ModelChunk& chunk, int64_t tokens);

// Working memory of a layer with relative positions: P rows of the table are in use, of 2 * span.
// In training the gradients as well.
struct RelativeOffsets {
  int64_t dropped = kAbsent;                    // (P, H) after the layer's dropout
  int64_t keys = kAbsent, queries = kAbsent;    // (P, H/V) the table's projections
  int64_t scores = kAbsent, score_floats = 0;   // of some heads at a time, (., T, longest)
  int64_t dkeys = kAbsent, dqueries = kAbsent;  // (P, H/V)
  int64_t gradient = kAbsent;                   // (P, H)
};

// Of the layers' gradients of weights.
SecondStreamLimits second_stream_limits(const EncoderConfig& config, int64_t tokens);

struct ActivationPlan {
  int64_t bias_table = kAbsent;       // what a chunk without embeddings was handed
  int64_t embedding_sum = kAbsent;    // (T, E)
  int64_t embedding_stats = kAbsent;  // (T, 2)
  int64_t projected = kAbsent;        // (T, E) what the projection of embeddings reads, if any
  std::vector<LayerOffsets> layers;   // of the chunk
  int64_t final_normed = kAbsent;     // (R, H) after the norm that follows the last layer, if any
  int64_t final_stats = kAbsent;      // (R, 2)
  int64_t mean = kAbsent;             // (B, H) of a text's tokens, where the head reads that
  int64_t pooler_input = kAbsent;     // (B or T, H) before the head's activation
  int64_t head_sum = kAbsent;         // (B or T, H) after it, where a LayerNorm follows
  int64_t head_stats = kAbsent;       // (B or T, 2)
  int64_t pooled = kAbsent;           // (B or T, H) after activation, norm and dropout
  int64_t scored = kAbsent;           // (M, H) the encoder's output; later its gradient
  int64_t transformed = kAbsent;      // (M, E) before the activation
  int64_t scored_sum = kAbsent;       // (M, E) after it
  int64_t scored_stats = kAbsent;     // (M, 2)
  int64_t scored_states = kAbsent;    // (M, E) what the decoder reads
  int64_t logits = kAbsent;           // (B, T or M, outputs)

  // Working memory: of the position bias. Its values, (heads/V, 2 * span - 1) of each shard held;
  // attention's gradient of them, (heads/V, 2T) of one shard after the other.
  int64_t bias_values = kAbsent;
  int64_t bias_gradient = kAbsent;
  // Of relative positions: the table after its norm, computed anew by each pass where a chunk has
  // the embeddings, and its statistics, (2 * span, H) and (2 * span, 2).
  int64_t relative = kAbsent, relative_stats = kAbsent;
  RelativeOffsets relative_layer;

  // Of the convolution beside the first layer, in a slot where a backward pass follows: its
  // product, the sum with the layer's output, and the norm's statistics.
  int64_t convolved = kAbsent, convolution_sum = kAbsent, convolution_stats = kAbsent;
  // Working memory: the product's operand, (T, H * taps), its gradient (T, H), and the gradient of
  // the layer's input (T, H).
  int64_t taps = kAbsent, convolved_gradient = kAbsent, convolution_input = kAbsent;

  // Working memory: the encoder's output after a token head's dropout, made again by the backward
  // pass.
  int64_t dropped = kAbsent;  // (T, H)

  // Gradients of the backward pass, each reused by all layers and tensor shards: working memory.
  int64_t gradient = kAbsent;            // (T, H) of a layer's output, then of its input
  int64_t projected_gradient = kAbsent;  // (T, E) of `projected`
  int64_t normed_gradient = kAbsent;     // (T, H) of what a norm before a block wrote
  int64_t mean_gradient = kAbsent;       // (B, H) of `mean`
  int64_t first_gradient = kAbsent;      // (B, H) the same for the last layer where R is B
  int64_t query_gradient = kAbsent;      // (B, H/V)*
  int64_t branch_gradient = kAbsent;   // (R, H)* of a projection before dropout; the head's (., H)
  int64_t context_gradient = kAbsent;  // (R, H/V)*
  int64_t wide_gradient = kAbsent;     // (R, I/V)*
  // Of attention: of its projection before dropout, (R, H)*, and (T, 3H/V)* or (T, 2H/V)*. They are
  // the two places above in f32, and where there is no second stream.
  int64_t attention_branch_gradient = kAbsent;
  int64_t qkv_gradient = kAbsent;
  PartialOffsets partials;

  // Of a ring: the number of the first layer's input, and how many tensors the pass has there.
  // spare_output: (T, H) of working memory, free while a layer is computed again.
  int64_t first_input = 0, ring_tensors = 0, spare_output = kAbsent;

  // Floats of the slot and of working memory, and where the later of them ends in the block.
  int64_t kept = 0, working = 0, floats = 0;

  // Training keeps a layer's results for its backward pass; with `recompute` it keeps each layer's
  // input, and all layers share the offsets of the rest, in working memory. The slot begins at
  // float `slot_at`, working memory at `working_at`, or behind the slot if that is kAbsent; both
  // are multiples of 16. What a ring has is no part of the slot. `scored`: M, of a head that has
  // such; kAbsent: as many as there are tokens. With `activated` results of the activation are
  // kept, too, else the backward pass computes them again: the same bits.
  static ActivationPlan training(const EncoderConfig& config, Head head, const ModelChunk& chunk,
                                 ActivationForm form, int64_t tokens, int64_t sequences,
                                 bool recompute, int64_t slot_at = 0, int64_t working_at = kAbsent,
                                 const InputRing& ring = {}, int64_t scored = kAbsent,
                                 bool activated = false);
  // Of the block of a part of the model, with its largest chunk in each of the slots; `horizon`: of
  // the ring.
  static int64_t training_floats(const EncoderConfig& config, Head head, const ModelPart& part,
                                 ActivationForm form, int64_t tokens, int64_t sequences,
                                 bool recompute, int64_t slots, int64_t horizon = 0,
                                 bool activated = false);
  // Whether the results of the activation function are kept: never with `recompute` or of gated
  // ones, else where the block has at most `bytes` with them.
  static bool keeps_activated(const EncoderConfig& config, Head head, const ModelPart& part,
                              ActivationForm form, int64_t tokens, int64_t sequences,
                              bool recompute, int64_t slots, int64_t bytes);
  // Inference has a handful of buffers for all layers, two where the backend computes whole layers
  // (Backend::has_layer): all are working memory, from the block's start.
  static ActivationPlan inference(const EncoderConfig& config, Head head, const ModelChunk& chunk,
                                  DType type, int64_t tokens, int64_t sequences, bool whole_layers,
                                  int64_t scored = kAbsent);
  static int64_t inference_floats(const EncoderConfig& config, Head head, const ModelPart& part,
                                  DType type, int64_t tokens, int64_t sequences, bool whole_layers);
};

}  // namespace finetune
