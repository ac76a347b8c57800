// ALBERT (Lan et al., 2019), as Hugging Face's modeling_albert names it: BERT's layers over
// narrower embeddings; the layers of a group share their weights.
#pragma once

#include "model/architectures/bert.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kAlbertModules[] = {
    {Role::word_embeddings, "albert.embeddings.word_embeddings"},
    {Role::position_embeddings, "albert.embeddings.position_embeddings"},
    {Role::type_embeddings, "albert.embeddings.token_type_embeddings"},
    {Role::embedding_norm, "albert.embeddings.LayerNorm"},
    {Role::embedding_projection, "albert.encoder.embedding_hidden_mapping_in"},
    {Role::query, "albert.encoder.albert_layer_groups.*.albert_layers.*.attention.query"},
    {Role::key, "albert.encoder.albert_layer_groups.*.albert_layers.*.attention.key"},
    {Role::value, "albert.encoder.albert_layer_groups.*.albert_layers.*.attention.value"},
    {Role::attention_output,
     "albert.encoder.albert_layer_groups.*.albert_layers.*.attention.dense"},
    {Role::attention_norm,
     "albert.encoder.albert_layer_groups.*.albert_layers.*.attention.LayerNorm"},
    {Role::inner, "albert.encoder.albert_layer_groups.*.albert_layers.*.ffn"},
    {Role::output, "albert.encoder.albert_layer_groups.*.albert_layers.*.ffn_output"},
    {Role::output_norm,
     "albert.encoder.albert_layer_groups.*.albert_layers.*.full_layer_layer_norm"},
    {Role::pooler, "albert.pooler"},
    {Role::sequence_head, "classifier"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "predictions.dense"},
    {Role::masked_norm, "predictions.LayerNorm"},
    {Role::masked_decoder, "predictions"},
};

inline constexpr std::string_view kAlbertBeginnings[] = {"embeddings.", "encoder.", "pooler."};
// The tied decoder, and the head for the order of sentences.
inline constexpr std::string_view kAlbertUnused[] = {"predictions.decoder.weight",
                                                     "sop_classifier."};

// Each layer of config.json is `inner_group_num` layers here, one after the other.
inline void read_albert_groups(const ConfigReader& reader, EncoderConfig& config) {
  LayerBlock& layer = config.layer;
  layer.groups = 1;
  reader.integer("num_hidden_groups", 1, kMostLayers, layer.groups);
  reader.integer("inner_group_num", 1, kMostLayers, layer.inner);
  const int64_t layers = config.num_hidden_layers;
  if (layer.groups > layers) {
    throw reader.error("num_hidden_groups ", layer.groups, " is above num_hidden_layers ", layers,
                       ": a group without a layer cannot be loaded");
  }
  if (layers * layer.inner > kMostLayers) {
    throw reader.error("num_hidden_layers ", layers, " times inner_group_num ", layer.inner,
                       " is above ", kMostLayers, " layers");
  }
  config.num_hidden_layers = layers * layer.inner;
}

// A config.json without these keys takes the defaults of Hugging Face's class: the xxlarge model.
inline void read_albert_config(const ConfigReader& reader, EncoderConfig& config) {
  config.vocab_size = 30000;
  config.hidden_size = 4096;
  config.num_attention_heads = 64;
  config.intermediate_size = 16384;
  config.hidden_act = Activation::gelu_tanh;
  config.hidden_dropout_prob = 0;
  config.attention_probs_dropout_prob = 0;
  config.layer.output_dropout = false;
  config.embeddings.narrow_size = 128;
  reader.integer("hidden_size", 1, kWidest, config.hidden_size);
  reader.integer("embedding_size", 1, kWidest, config.embeddings.narrow_size);
  require_narrow_embeddings(reader, config);
  read_bert_config(reader, config);
  config.classifier_dropout = 0.1;  // BERT's key has no meaning here
  reader.probability("classifier_dropout_prob", config.classifier_dropout);
  read_albert_groups(reader, config);
}

inline constexpr Architecture kAlbertArchitecture{
    .model_type = "albert",
    .class_prefix = "Albert",
    .names = {.base_prefix = "albert.",
              .bare_beginnings = kAlbertBeginnings,
              .unused = kAlbertUnused,
              .decoder_bias = "predictions.bias",
              .other_decoder_bias = "predictions.decoder.bias"},
    .modules = kAlbertModules,
    .states_token_types = true,
    .read_config = read_albert_config};

}  // namespace finetune
