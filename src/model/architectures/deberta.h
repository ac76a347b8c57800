// DeBERTa v2 and v3 (He et al., 2021), as Hugging Face's modeling_deberta_v2 names them: BERT's
// layers with scores by relative position, and GELU in the pooler.
#pragma once

#include "model/architectures/bert.h"
#include "model/config.h"

namespace finetune {

// The masked head has one of two sets of names.
template <bool kLegacy>
inline constexpr Module kDebertaModules[] = {
    {Role::word_embeddings, "deberta.embeddings.word_embeddings"},
    {Role::position_embeddings, "deberta.embeddings.position_embeddings"},
    {Role::type_embeddings, "deberta.embeddings.token_type_embeddings"},
    {Role::embedding_norm, "deberta.embeddings.LayerNorm"},
    {Role::relative_embeddings, "deberta.encoder.rel_embeddings"},
    {Role::relative_norm, "deberta.encoder.LayerNorm"},
    {Role::convolution, "deberta.encoder.conv.conv"},
    {Role::convolution_norm, "deberta.encoder.conv.LayerNorm"},
    {Role::query, "deberta.encoder.layer.*.attention.self.query_proj"},
    {Role::key, "deberta.encoder.layer.*.attention.self.key_proj"},
    {Role::value, "deberta.encoder.layer.*.attention.self.value_proj"},
    {Role::position_key, "deberta.encoder.layer.*.attention.self.pos_key_proj"},
    {Role::position_query, "deberta.encoder.layer.*.attention.self.pos_query_proj"},
    {Role::attention_output, "deberta.encoder.layer.*.attention.output.dense"},
    {Role::attention_norm, "deberta.encoder.layer.*.attention.output.LayerNorm"},
    {Role::inner, "deberta.encoder.layer.*.intermediate.dense"},
    {Role::output, "deberta.encoder.layer.*.output.dense"},
    {Role::output_norm, "deberta.encoder.layer.*.output.LayerNorm"},
    {Role::pooler, "pooler.dense"},
    {Role::sequence_head, "classifier"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform,
     kLegacy ? "cls.predictions.transform.dense" : "lm_predictions.lm_head.dense"},
    {Role::masked_norm,
     kLegacy ? "cls.predictions.transform.LayerNorm" : "lm_predictions.lm_head.LayerNorm"},
    {Role::masked_decoder, kLegacy ? "cls.predictions" : "lm_predictions.lm_head"},
};

inline constexpr std::string_view kDebertaBeginnings[] = {"embeddings.", "encoder."};
// The tied decoder and heads of pre-training. The last two entries are for models without a table
// of positions, since their published files have one.
template <bool kLegacy>
inline constexpr std::string_view kDebertaUnused[] = {
    kLegacy ? "cls.predictions.decoder." : "cls.",
    kLegacy ? "lm_predictions." : "lm_predictions.lm_head.decoder.",
    "mask_predictions.",
    "deberta.embeddings.position_embeddings.",
    "embeddings.position_embeddings.",
};

inline void read_deberta_config(const ConfigReader& reader, EncoderConfig& config);

template <bool kLegacy, bool kPositions>
inline constexpr Architecture kDebertaOf{
    .model_type = "deberta-v2",
    .class_prefix = "DebertaV2",
    .names = {.base_prefix = "deberta.",
              .bare_beginnings = kDebertaBeginnings,
              .unused = std::span(kDebertaUnused<kLegacy>).first(kPositions ? 3 : 5),
              .decoder_bias = kLegacy ? "cls.predictions.bias" : "lm_predictions.lm_head.bias",
              .other_decoder_bias = kLegacy ? "cls.predictions.decoder.bias" : ""},
    .modules = kDebertaModules<kLegacy>,
    .pretrained_pooler = false,
    .states_token_types = true,
    .read_config = read_deberta_config};
inline constexpr const Architecture& kDebertaArchitecture = kDebertaOf<true, true>;

inline void read_deberta_norm(const ConfigReader& reader, RelativeBlock& relative) {
  for (const std::string& norm : reader.choices("norm_rel_ebd")) {
    if (norm != "none" && norm != "layer_norm") {
      throw reader.error("norm_rel_ebd has ", in_quotes(norm),
                         "; only 'none' and 'layer_norm' can be loaded");
    }
    relative.norm |= norm == "layer_norm";
  }
}

// Error(model): the buckets are too few to be logarithmic, or too many for the distances.
inline void require_buckets(const ConfigReader& reader, const RelativeBlock& relative) {
  constexpr int64_t kFewest = 4;
  if (relative.buckets <= 0) return;
  if (relative.buckets < kFewest) {
    throw reader.error("position_buckets is ", relative.buckets, "; only ", kFewest,
                       " or more, or -1 for none, can be loaded");
  }
  const int64_t least = relative.buckets / 2 + 2;
  if (relative.farthest < least) {
    throw reader.error("position_buckets ", relative.buckets, " needs max_relative_positions ",
                       least, " or more; the distances reach ", relative.farthest);
  }
}

inline void read_deberta_positions(const ConfigReader& reader, EncoderConfig& config) {
  RelativeBlock& relative = config.relative;
  for (const std::string& type : reader.choices("pos_att_type")) {
    if (type.empty()) continue;
    bool& named = type == "c2p" ? relative.of_queries : relative.of_keys;
    if (type != "c2p" && type != "p2c") {
      throw reader.error("pos_att_type has ", in_quotes(type),
                         "; only 'c2p' and 'p2c' can be loaded");
    }
    named = true;
  }
  config.layer.score_terms = 1 + relative.of_queries + relative.of_keys;
  read_deberta_norm(reader, relative);
  if (!reader.flag("relative_attention")) {
    if (relative.norm) {
      throw reader.error(
          "norm_rel_ebd has 'layer_norm', but relative_attention is false, so nothing uses the "
          "norm; set norm_rel_ebd to 'none'");
    }
    relative = {};
    return;
  }
  if (config.layer.score_terms == 1) {
    throw reader.error(
        "relative_attention is true, but pos_att_type names neither 'c2p' nor 'p2c'");
  }
  constexpr int64_t kFarthest = int64_t{1} << 16;
  reader.integer("max_relative_positions", -1, kFarthest, relative.farthest);
  if (relative.farthest < 1) relative.farthest = config.max_position_embeddings;
  reader.integer("position_buckets", -1, kFarthest, relative.buckets);
  relative.buckets = std::max<int64_t>(relative.buckets, 0);
  require_buckets(reader, relative);
  relative.span = relative.buckets > 0 ? relative.buckets : relative.farthest;
  bool shared = false;
  reader.truth("share_att_key", shared);
  relative.own_weights = !shared;
}

inline void read_deberta_head(const ConfigReader& reader, EncoderConfig& config) {
  config.head = {.activation = Activation::gelu};
  reader.activation("pooler_hidden_act", config.head.activation);
  config.classifier_dropout = -1;  // BERT's key has no meaning here
  reader.probability("cls_dropout", config.classifier_dropout);
  config.head_input_dropout = 0;
  reader.probability("pooler_dropout", config.head_input_dropout);
  config.head.input_dropout = config.head_input_dropout > 0;
}

// Error(model): the key has another value than `size`, the only one that can be loaded.
inline void require_size(const ConfigReader& reader, const char* key, int64_t size) {
  int64_t stated = size;
  reader.integer(key, 0, kWidest, stated);
  if (stated != size) {
    throw reader.error(key, " is ", stated, "; only ", size, " can be loaded");
  }
}

inline void read_deberta_convolution(const ConfigReader& reader, EncoderConfig& config) {
  constexpr int64_t kMostTaps = 255;
  ConvolutionBlock& convolution = config.convolution;
  reader.integer("conv_kernel_size", 0, kMostTaps, convolution.taps);
  if (!convolution.on()) return;
  if (convolution.taps % 2 == 0 || config.num_hidden_layers < 2) {
    throw reader.error("conv_kernel_size ", convolution.taps, " with ", config.num_hidden_layers,
                       " layers; only odd sizes and two layers or more can be loaded");
  }
  require_size(reader, "conv_groups", 1);
  reader.activation("conv_act", convolution.activation);
}

// A config.json without these keys takes the defaults of Hugging Face's class: v2-xlarge.
inline void read_deberta_config(const ConfigReader& reader, EncoderConfig& config) {
  config.vocab_size = 128100;
  config.hidden_size = 1536;
  config.num_hidden_layers = 24;
  config.num_attention_heads = 24;
  config.intermediate_size = 6144;
  config.layer_norm_eps = 1e-7;
  config.type_vocab_size = 0;
  reader.integer("type_vocab_size", 0, kWidest, config.type_vocab_size);
  config.embeddings.pair_types = config.type_vocab_size > 1;
  reader.truth("position_biased_input", config.embeddings.positions);
  read_bert_config(reader, config);
  require_size(reader, "embedding_size", config.hidden_size);
  require_size(reader, "pooler_hidden_size", config.hidden_size);
  require_size(reader, "attention_head_size", config.head_size());
  read_deberta_convolution(reader, config);
  read_deberta_positions(reader, config);
  read_deberta_head(reader, config);
  bool legacy = true;
  reader.truth("legacy", legacy);
  config.head.always_tied = !legacy;
  config.architecture = config.embeddings.positions
                            ? legacy ? &kDebertaOf<true, true> : &kDebertaOf<false, true>
                        : legacy ? &kDebertaOf<true, false>
                                 : &kDebertaOf<false, false>;
}

}  // namespace finetune
