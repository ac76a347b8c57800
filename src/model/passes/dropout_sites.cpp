// Names each site's random stream.
#include "model/passes/dropout_sites.h"

#include "core/numeric/philox.h"

namespace finetune {
namespace {

// The order of dropout_streams: embeddings, head, the head's input, three for each layer, then one
// for each layer's relative positions, and the convolution.
constexpr int64_t kEmbeddingStream = 0, kHeadStream = 1, kHeadInputStream = 2, kLayerStreams = 3;

}  // namespace

std::vector<DropoutStream> dropout_streams(const EncoderConfig& config, uint64_t seed,
                                           uint32_t step) {
  std::vector<DropoutStream> streams;
  auto add = [&](uint32_t use) { streams.push_back({derive_key(seed, use), step}); };
  add(uint32_t(RandomUse::embedding_dropout));
  add(uint32_t(RandomUse::head_dropout));
  add(uint32_t(RandomUse::head_input_dropout));
  for (int l = 0; l < int(config.num_hidden_layers); ++l) {
    add(layer_use(RandomUse::attention_dropout, l));
    add(layer_use(RandomUse::attention_output_dropout, l));
    add(layer_use(RandomUse::output_dropout, l));
  }
  for (int l = 0; config.relative.on() && l < int(config.num_hidden_layers); ++l) {
    add(layer_use(RandomUse::relative_dropout, l));
  }
  add(uint32_t(RandomUse::convolution_dropout));
  return streams;
}

Dropout DropoutSites::embeddings() const {
  return site(hidden(), uint32_t(RandomUse::embedding_dropout), kEmbeddingStream);
}

Dropout DropoutSites::head_input() const {
  if (!plan_ || !config_.head.input_dropout) return {};
  return site(plan_->head_input >= 0 ? plan_->head_input : plan_->head,
              uint32_t(RandomUse::head_input_dropout), kHeadInputStream);
}

Dropout DropoutSites::head() const {
  return site(plan_ ? plan_->head : 0, uint32_t(RandomUse::head_dropout), kHeadStream);
}

Dropout DropoutSites::token_head() const {
  return config_.head.token_dropout ? head() : Dropout{};
}

Dropout DropoutSites::relative(int64_t layer) const {
  return site(hidden(), layer_use(RandomUse::relative_dropout, int(layer)),
              kLayerStreams + 3 * config_.num_hidden_layers + layer);
}

Dropout DropoutSites::convolution() const {
  const int64_t of_layers = config_.relative.on() ? 4 : 3;
  return site(hidden(), uint32_t(RandomUse::convolution_dropout),
              kLayerStreams + of_layers * config_.num_hidden_layers);
}

LayerDropout DropoutSites::layer(int64_t layer) const {
  const int64_t first = kLayerStreams + 3 * layer;
  auto use = [&](RandomUse of) { return layer_use(of, int(layer)); };
  const LayerBlock& block = config_.layer;
  const double attention = plan_ ? plan_->attention : 0, gate = plan_ ? plan_->gate : 0;
  const double attention_output = block.attention_dropout_twice ? attention : hidden();
  // Layers with norms before their blocks drop out the gated activation, not the block's output.
  const double output = block.norm_before ? gate : block.output_dropout ? hidden() : 0;
  return {site(attention, use(RandomUse::attention_dropout), first),
          site(block.attention_output_dropout ? attention_output : 0,
               use(RandomUse::attention_output_dropout), first + 1),
          site(output, use(RandomUse::output_dropout), first + 2)};
}

Dropout DropoutSites::site(double probability, uint32_t use, int64_t stream) const {
  if (probability <= 0) return {};
  if (!plan_->streams) {
    return Dropout::make(probability, derive_key(plan_->seed, use), plan_->step);
  }
  Dropout dropout = Dropout::make(probability, {}, 0);
  dropout.stream = plan_->streams + stream;
  return dropout;
}

}  // namespace finetune
