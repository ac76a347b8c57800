// Offsets of every activation of a training pass, with recompute, and of inference.
#include "model/activations.h"

#include <algorithm>

namespace finetune {
namespace {

// Hands out 64-byte aligned places one after the other.
class Allocator {
 public:
  explicit Allocator(DType type) : type_(type) {}
  int64_t take(int64_t floats) {
    int64_t place = used_;
    used_ += (floats + 15) / 16 * 16;
    return place;
  }
  // Of the backend's activation_type.
  int64_t take_typed(int64_t count) { return take(floats_of(count)); }
  int64_t floats_of(int64_t count) const {
    return (count * int64_t(size_of(type_)) + 3) / int64_t(sizeof(float));
  }
  // For products, in bf16.
  int64_t take_rounded(int64_t count) { return type_ == DType::bf16 ? take_typed(count) : kAbsent; }
  int64_t used() const { return used_; }

 private:
  DType type_;
  int64_t used_ = 0;
};

void add_head(ActivationPlan& plan, Allocator& memory, const BertConfig& config, Head head,
              int64_t tokens, int64_t sequences) {
  bool sequence = head.kind == HeadKind::sequence;
  if (sequence) {
    plan.pooler_input = memory.take(sequences * config.hidden_size);
    plan.pooled = memory.take(sequences * config.hidden_size);
  }
  plan.logits = memory.take((sequence ? sequences : tokens) * head.outputs);
}

// What a layer computes between its input and its output.
LayerPlaces take_results(Allocator& memory, const BertConfig& config, int64_t tokens, int64_t rows,
                         bool first_only) {
  const int64_t h = config.hidden_size, inner = config.intermediate_size;
  LayerPlaces places;
  places.qkv = memory.take_typed(tokens * (first_only ? 2 : 3) * h);
  places.context = memory.take_typed(rows * h);
  places.log_sums = memory.take(config.num_attention_heads * rows);
  places.attention_sum = memory.take(rows * h);
  places.attention_stats = memory.take(rows * 2);
  places.middle = memory.take(rows * h);
  places.middle_rounded = memory.take_rounded(rows * h);
  places.inner = memory.take_typed(rows * inner);
  places.output_sum = memory.take(rows * h);
  places.output_stats = memory.take(rows * 2);
  return places;
}

}  // namespace

ActivationPlan ActivationPlan::training(const BertConfig& config, Head head, DType type,
                                        int64_t tokens, int64_t sequences, bool recompute) {
  const int64_t h = config.hidden_size, inner = config.intermediate_size;
  ActivationPlan plan;
  Allocator memory(type);
  plan.embedding_sum = memory.take(tokens * h);
  plan.embedding_stats = memory.take(tokens * 2);
  int64_t input = memory.take(tokens * h);
  int64_t input_rounded = kAbsent;  // the embedding's output is rounded where it is read
  int64_t most_rows = sequences;    // of the gradients that have R rows
  LayerPlaces places;
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const bool last = l + 1 == config.num_hidden_layers;
    const bool first_only = head.kind == HeadKind::sequence && last;
    const int64_t rows = first_only ? sequences : tokens;
    most_rows = std::max(most_rows, rows);
    // The first layer's places are large enough for every layer's results: no later one has more.
    if (l == 0 || !recompute) places = take_results(memory, config, tokens, rows, first_only);
    places.input = input;
    places.input_rounded = input_rounded;
    if (first_only) {
      places.first = memory.take(sequences * h);
      places.first_query = memory.take_typed(sequences * h);
    }
    places.output = memory.take(rows * h);
    places.output_rounded = last || recompute ? kAbsent : memory.take_rounded(rows * h);
    input = places.output;
    input_rounded = places.output_rounded;
    plan.layers.push_back(places);
  }
  add_head(plan, memory, config, head, tokens, sequences);
  plan.gradient = memory.take(tokens * h);
  plan.first_gradient = memory.take(sequences * h);
  plan.query_gradient = memory.take_typed(sequences * h);
  // The head has its gradient there too, in f32.
  plan.branch_gradient = memory.take(std::max(memory.floats_of(most_rows * h), sequences * h));
  plan.context_gradient = memory.take_typed(most_rows * h);
  plan.wide_gradient =
      memory.take_typed(std::max(most_rows * std::max(inner, 3 * h), tokens * 2 * h));
  // The backward pass computes it again.
  for (LayerPlaces& layer : plan.layers) layer.activated = plan.wide_gradient;
  plan.floats = memory.used();
  return plan;
}

// A layer reads its input from `state` and leaves its output there; attention's tensors are dead
// when the feed-forward begins, so the two share `wide`.
ActivationPlan ActivationPlan::inference(const BertConfig& config, Head head, DType type,
                                         int64_t tokens, int64_t sequences, bool whole_layers) {
  const int64_t h = config.hidden_size;
  ActivationPlan plan;
  Allocator memory(type);
  const int64_t state = memory.take(tokens * h);
  const int64_t sum = memory.take(tokens * h);
  plan.embedding_sum = sum;
  LayerPlaces places;
  places.input = places.output = state;
  if (whole_layers) {
    places.context = sum;
  } else {
    places.input_rounded = places.output_rounded = memory.take_rounded(tokens * h);
    places.middle = memory.take(tokens * h);
    places.middle_rounded = memory.take_rounded(tokens * h);
    const int64_t qkv_floats = (memory.floats_of(tokens * 3 * h) + 15) / 16 * 16;
    const int64_t wide = memory.take(std::max(memory.floats_of(tokens * config.intermediate_size),
                                              qkv_floats + memory.floats_of(tokens * h)));
    places.qkv = wide;
    places.context = wide + qkv_floats;
    places.attention_sum = places.output_sum = sum;
    places.inner = places.activated = wide;
  }
  plan.layers.assign(size_t(config.num_hidden_layers), places);
  plan.layers.front().input_rounded =
      kAbsent;  // the embedding's output is rounded where it is read
  plan.layers.back().output_rounded = kAbsent;
  if (head.kind == HeadKind::sequence) {
    plan.layers.back().first = memory.take(sequences * h);
    if (!whole_layers) plan.layers.back().first_query = memory.take_typed(sequences * h);
  }
  add_head(plan, memory, config, head, tokens, sequences);
  plan.floats = memory.used();
  return plan;
}

}  // namespace finetune
