// Sizes of the position data that layers share.
#include "model/positions/position_plan.h"

#include <algorithm>

#include "model/positions/relative_positions.h"

namespace finetune {
namespace {

// Scores of pairs are computed for as many heads at a time as this has room for, but at least one.
constexpr int64_t kPairFloats = int64_t{1} << 22;

}  // namespace

void take_convolved(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                    const ModelChunk& chunk, int64_t tokens) {
  if (!config.convolution.on() || !chunk.embeddings) return;
  plan.convolved = memory.take(tokens * config.hidden_size);
  plan.convolution_sum = memory.take(tokens * config.hidden_size);
  plan.convolution_stats = memory.take(tokens * 2);
}

void take_taps(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
               const ModelChunk& chunk, int64_t tokens, bool training) {
  if (!config.convolution.on() || !chunk.embeddings) return;
  const int64_t h = config.hidden_size;
  plan.taps = memory.take(tokens * h * config.convolution.taps);
  if (!training) return;
  plan.convolved_gradient = memory.take(tokens * h);
  plan.convolution_input = memory.take(tokens * h);
}

void take_bias_values(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                      const ModelChunk& chunk, int64_t tokens) {
  if (!config.layer.position_bias) return;
  const int64_t heads = config.num_attention_heads / chunk.tensor_shards * chunk.held_shards;
  plan.bias_values = memory.take(heads * (2 * longest_sequence(config, tokens) - 1));
}

void take_relative(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                   const ModelChunk& chunk, int64_t tokens, bool training) {
  const RelativeBlock& relative = config.relative;
  if (!relative.on()) return;
  const int64_t h = config.hidden_size, width = h / chunk.tensor_shards;
  const int64_t longest = longest_sequence(config, tokens);
  const int64_t rows = RowsInUse(relative, longest).count;
  if (chunk.embeddings) plan.relative = memory.take(relative.rows() * h);
  if (chunk.embeddings) plan.relative_stats = memory.take(relative.rows() * 2);
  RelativeOffsets& layer = plan.relative_layer;
  layer.dropped = memory.take(rows * h);
  layer.keys = memory.take(rows * width);
  layer.queries = memory.take(rows * width);
  const int64_t of_head = tokens * longest;
  const int64_t heads = config.num_attention_heads / chunk.tensor_shards;
  layer.score_floats = std::max(of_head, std::min(kPairFloats, heads * of_head));
  layer.scores = memory.take(layer.score_floats);
  if (!training) return;
  layer.dkeys = memory.take(rows * width);
  layer.dqueries = memory.take(rows * width);
  layer.gradient = memory.take(rows * h);
}

void take_bias_table(ActivationPlan& plan, Allocator& memory, const EncoderConfig& config,
                     const ModelChunk& chunk) {
  if (chunk.embeddings) return;
  plan.bias_table = memory.take(state_floats(config, chunk, 0));
  if (config.relative.on()) plan.relative = plan.bias_table;
}

int64_t carried_rows(const EncoderConfig& config, int64_t tensor_shards, int64_t held) {
  if (config.relative.on()) return config.relative.rows() * held;
  if (!config.layer.position_bias) return 0;
  const int64_t floats = kPositionBuckets * config.num_attention_heads / tensor_shards * held;
  return (floats + config.hidden_size - 1) / config.hidden_size;
}

int64_t state_floats(const EncoderConfig& config, const ModelChunk& chunk, int64_t tokens) {
  return (tokens + carried_rows(config, chunk.tensor_shards, chunk.held_shards)) *
         config.hidden_size;
}

}  // namespace finetune
