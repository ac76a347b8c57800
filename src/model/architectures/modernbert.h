// ModernBERT (Warner et al., 2024), as Hugging Face's modeling_modernbert names it: norms before
// blocks, rotary positions, layers that see a window of tokens, and gated feed-forward blocks.
#pragma once

#include "core/log.h"
#include "core/text/json_value.h"
#include "core/text/text.h"
#include "model/architectures/config_reader.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kModernBertModules[] = {
    {Role::word_embeddings, "model.embeddings.tok_embeddings"},
    {Role::embedding_norm, "model.embeddings.norm"},
    {Role::query, "model.layers.*.attn.Wqkv"},
    {Role::key, "model.layers.*.attn.Wqkv"},
    {Role::value, "model.layers.*.attn.Wqkv"},
    {Role::attention_output, "model.layers.*.attn.Wo"},
    {Role::attention_norm, "model.layers.*.attn_norm"},
    {Role::inner, "model.layers.*.mlp.Wi"},
    {Role::gate, "model.layers.*.mlp.Wi"},
    {Role::output, "model.layers.*.mlp.Wo"},
    {Role::output_norm, "model.layers.*.mlp_norm"},
    {Role::final_norm, "model.final_norm"},
    {Role::pooler, "head.dense"},
    {Role::head_norm, "head.norm"},
    {Role::sequence_head, "classifier"},
    {Role::token_head, "classifier"},
    {Role::masked_transform, "head.dense"},
    {Role::masked_norm, "head.norm"},
    {Role::masked_decoder, "decoder"},
};

inline constexpr std::string_view kModernBertBeginnings[] = {"embeddings.", "layers.",
                                                             "final_norm."};
inline constexpr std::string_view kModernBertUnused[] = {"decoder.weight"};  // is tied

// Reads layer_types, which transformers 5 writes; without it every n-th layer is global.
inline void read_modernbert_layers(const ConfigReader& reader, EncoderConfig& config) {
  const int64_t layers = config.num_hidden_layers;
  config.rotary.local.assign(size_t(layers), false);
  const std::vector<std::string> types = reader.texts("layer_types");
  if (!types.empty() && int64_t(types.size()) != layers) {
    throw reader.error("layer_types has ", types.size(), " entries for ", layers, " layers");
  }
  int64_t every = 3;
  reader.integer("global_attn_every_n_layers", 1, int64_t{1} << 31, every);
  for (int64_t l = 0; l < layers; ++l) {
    const std::string type = types.empty() ? "" : types[size_t(l)];
    if (!type.empty() && type != "full_attention" && type != "sliding_attention") {
      throw reader.error("layer_types has ", in_quotes(type),
                         "; only full_attention and sliding_attention can be loaded");
    }
    config.rotary.local[size_t(l)] = types.empty() ? l % every != 0 : type == "sliding_attention";
  }
  int64_t window = 128;
  reader.integer("local_attention", 0, int64_t{1} << 31, window);
  config.rotary.window = window / 2;
  // The number of tokens on each side. transformers 5 uses it instead of local_attention.
  reader.integer("sliding_window", 0, int64_t{1} << 30, config.rotary.window);
}

// Reads rope_parameters, which transformers 5 writes, or one key for each kind of layer.
inline void read_modernbert_rotation(const ConfigReader& reader, EncoderConfig& config) {
  constexpr double kLeast = 1, kMost = 1e12;
  reader.number("global_rope_theta", kLeast, kMost, config.rotary.theta);
  reader.number("local_rope_theta", kLeast, kMost, config.rotary.local_theta);
  if (reader.is_null("local_rope_theta")) config.rotary.local_theta = config.rotary.theta;
  for (const auto& [type, theta] : {std::pair{"full_attention", &config.rotary.theta},
                                    std::pair{"sliding_attention", &config.rotary.local_theta}}) {
    const std::string_view theta_key[] = {"rope_parameters", type, "rope_theta"};
    const std::string_view type_key[] = {"rope_parameters", type, "rope_type"};
    reader.number_at(theta_key, kLeast, kMost, *theta);
    const std::string kind = reader.text_at(type_key, "default");
    if (kind != "default") {
      throw reader.error("rope_parameters: ", type, " has rope_type ", in_quotes(kind),
                         "; only 'default' can be loaded");
    }
  }
  const std::string_view flat_key[] = {"rope_parameters", "rope_type"};
  const std::string flat = reader.text_at(flat_key, "");
  if (!flat.empty()) {
    throw reader.error("rope_parameters has rope_type ", in_quotes(flat),
                       "; ModernBERT has them for full_attention and sliding_attention");
  }
  for (std::string_view key : {"type", "rope_type"}) {
    const std::string_view path[] = {"rope_scaling", key};
    const std::string kind = reader.text_at(path, "default");
    if (kind != "default") {
      throw reader.error("rope_scaling has ", in_quotes(kind), "; only 'default' can be loaded");
    }
  }
  if (config.head_size() % 2 != 0) {
    throw reader.error("attention heads have ", config.head_size(),
                       " columns; rotary positions need an even number");
  }
}

inline void read_modernbert_head(const ConfigReader& reader, EncoderConfig& config) {
  HeadBlock& head = config.head;
  head = {.activation = Activation::gelu,
          .masked_alike = true,
          .norm = true,
          .dense_on_tokens = true,
          .dense_bias = false};
  const std::string pooling = reader.text("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean") {
    throw reader.error("classifier_pooling is ", in_quotes(pooling),
                       "; only 'cls' and 'mean' can be loaded");
  }
  head.mean = pooling == "mean";
  reader.activation("classifier_activation", head.activation);
  reader.truth("classifier_bias", head.dense_bias);
  reader.truth("decoder_bias", head.decoder_bias);
  config.classifier_dropout = 0;
  reader.probability("classifier_dropout", config.classifier_dropout);
  config.token_head_dropout = config.classifier_dropout;
}

inline void read_modernbert_config(const ConfigReader& reader, EncoderConfig& config) {
  config.vocab_size = 50368;
  config.intermediate_size = 1152;
  config.num_hidden_layers = 22;
  config.max_position_embeddings = 8192;
  config.type_vocab_size = 0;
  config.pad_token_id = 50283;
  config.layer = {.attention_dropout_twice = true,
                  .norm_before = true,
                  .gated = true,
                  .attention_bias = false,
                  .inner_bias = false,
                  .norm_bias = false};
  // Before read_sizes: rotary models have no position embedding.
  config.rotary.theta = 160000;
  config.rotary.local_theta = 10000;
  read_sizes(reader, {}, config);
  read_modernbert_layers(reader, config);
  read_modernbert_rotation(reader, config);
  read_modernbert_head(reader, config);
  reader.truth("attention_bias", config.layer.attention_bias);
  reader.truth("mlp_bias", config.layer.inner_bias);
  reader.truth("norm_bias", config.layer.norm_bias);
  reader.activation("hidden_activation", config.hidden_act);
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  reader.probability("embedding_dropout", config.hidden_dropout_prob);
  reader.probability("attention_dropout", config.attention_probs_dropout_prob);
  reader.probability("mlp_dropout", config.gate_dropout);
  config.layer_norm_eps = 1e-5;
  reader.number("norm_eps", 0, 1, config.layer_norm_eps);
  reader.number("initializer_range", 0, 1e6, config.initializer_range);
  config.initializer_cutoff = reader.is_null("initializer_cutoff_factor") ? 3 : 2;
  reader.number("initializer_cutoff_factor", 0.1, 1e6, config.initializer_cutoff);
}

// transformers 4 reads neither layer_types nor rope_parameters, and 5 cannot read a
// local_rope_theta of null.
inline void add_modernbert_keys(const EncoderConfig& config, JsonValue& json) {
  for (const auto& [key, theta] : {std::pair{"global_rope_theta", config.rotary.theta},
                                   std::pair{"local_rope_theta", config.rotary.local_theta}}) {
    if (json[key].as<double>() != theta) json.set(key, theta);
  }
  if (json["local_attention"].as<int64_t>().value_or(128) / 2 != config.rotary.window ||
      (json.contains("local_attention") && !json["local_attention"].as<int64_t>())) {
    json.set("local_attention", 2 * config.rotary.window);
  }
  const std::vector<bool>& local = config.rotary.local;
  const auto is_every = [&](size_t n) {
    for (size_t l = 0; l < local.size(); ++l) {
      if (local[l] != (l % n != 0)) return false;
    }
    return true;
  };
  const bool is_stated = json.contains("global_attn_every_n_layers");
  const auto stated = json["global_attn_every_n_layers"].as<int64_t>();
  if ((stated || !is_stated) && is_every(size_t(stated.value_or(3)))) return;
  for (size_t every = 1; every <= local.size(); ++every) {
    if (is_every(every)) return json.set("global_attn_every_n_layers", int64_t(every));
  }
  warn(
      "not every n-th layer of this model sees all tokens, as its layer_types say: transformers 4 "
      "ignores them and computes another model");
}

inline constexpr Architecture kModernBertArchitecture{
    .model_type = "modernbert",
    .class_prefix = "ModernBert",
    .names = {.base_prefix = "model.",
              .word_embedding = "embeddings.tok_embeddings.weight",
              .bare_beginnings = kModernBertBeginnings,
              .unused = kModernBertUnused,
              .decoder_bias = "decoder.bias",
              .other_decoder_bias = {}},
    .modules = kModernBertModules,
    .add_keys_of_versions = add_modernbert_keys,
    .read_config = read_modernbert_config};

}  // namespace finetune
