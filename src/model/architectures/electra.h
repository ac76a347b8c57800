// ELECTRA (Clark et al., 2020), as Hugging Face's modeling_electra names it: BERT's layers over
// narrower embeddings, with RoBERTa's head with GELU.
#pragma once

#include "model/architectures/bert.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kElectraModules[] = {
    {Role::word_embeddings, "electra.embeddings.word_embeddings"},
    {Role::position_embeddings, "electra.embeddings.position_embeddings"},
    {Role::type_embeddings, "electra.embeddings.token_type_embeddings"},
    {Role::embedding_norm, "electra.embeddings.LayerNorm"},
    {Role::embedding_projection, "electra.embeddings_project"},
    {Role::query, "electra.encoder.layer.*.attention.self.query"},
    {Role::key, "electra.encoder.layer.*.attention.self.key"},
    {Role::value, "electra.encoder.layer.*.attention.self.value"},
    {Role::attention_output, "electra.encoder.layer.*.attention.output.dense"},
    {Role::attention_norm, "electra.encoder.layer.*.attention.output.LayerNorm"},
    {Role::inner, "electra.encoder.layer.*.intermediate.dense"},
    {Role::output, "electra.encoder.layer.*.output.dense"},
    {Role::output_norm, "electra.encoder.layer.*.output.LayerNorm"},
    {Role::pooler, "classifier.dense"},
    {Role::sequence_head, "classifier.out_proj"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "generator_predictions.dense"},
    {Role::masked_norm, "generator_predictions.LayerNorm"},
    {Role::masked_decoder, "generator_lm_head"},
};

inline constexpr std::string_view kElectraBeginnings[] = {"embeddings.", "embeddings_project.",
                                                          "encoder."};
// The tied decoder, and the discriminator's head.
inline constexpr std::string_view kElectraUnused[] = {"generator_lm_head.weight",
                                                      "discriminator_predictions."};

inline void read_electra_config(const ConfigReader& reader, EncoderConfig& config) {
  config.hidden_size = 256;
  config.num_attention_heads = 4;
  config.intermediate_size = 1024;
  config.embeddings.narrow_size = 128;
  config.head = {.input_dropout = true, .activation = Activation::gelu, .masked_gelu = true};
  reader.integer("hidden_size", 1, kWidest, config.hidden_size);
  reader.integer("embedding_size", 1, kWidest, config.embeddings.narrow_size);
  require_narrow_embeddings(reader, config);
  if (config.embeddings.narrow_size == config.hidden_size) config.embeddings.narrow_size = 0;
  read_bert_config(reader, config);
}

inline constexpr Architecture kElectraArchitecture{
    .model_type = "electra",
    .class_prefix = "Electra",
    .names = {.base_prefix = "electra.",
              .bare_beginnings = kElectraBeginnings,
              .unused = kElectraUnused,
              .decoder_bias = "generator_lm_head.bias",
              .other_decoder_bias = {}},
    .modules = kElectraModules,
    .pretrained_pooler = false,
    .read_config = read_electra_config};

}  // namespace finetune
