// BERT (Devlin et al., 2018), as Hugging Face's modeling_bert names it.
#pragma once

#include "model/architectures/config_reader.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kBertModules[] = {
    {Role::word_embeddings, "bert.embeddings.word_embeddings"},
    {Role::position_embeddings, "bert.embeddings.position_embeddings"},
    {Role::type_embeddings, "bert.embeddings.token_type_embeddings"},
    {Role::embedding_norm, "bert.embeddings.LayerNorm"},
    {Role::query, "bert.encoder.layer.*.attention.self.query"},
    {Role::key, "bert.encoder.layer.*.attention.self.key"},
    {Role::value, "bert.encoder.layer.*.attention.self.value"},
    {Role::attention_output, "bert.encoder.layer.*.attention.output.dense"},
    {Role::attention_norm, "bert.encoder.layer.*.attention.output.LayerNorm"},
    {Role::inner, "bert.encoder.layer.*.intermediate.dense"},
    {Role::output, "bert.encoder.layer.*.output.dense"},
    {Role::output_norm, "bert.encoder.layer.*.output.LayerNorm"},
    {Role::pooler, "bert.pooler.dense"},
    {Role::sequence_head, "classifier"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "cls.predictions.transform.dense"},
    {Role::masked_norm, "cls.predictions.transform.LayerNorm"},
    {Role::masked_decoder, "cls.predictions"},
};

inline void read_bert_config(const ConfigReader& reader, EncoderConfig& config) {
  read_sizes(reader, {}, config);
  reader.activation("hidden_act", config.hidden_act);
  reader.probability("hidden_dropout_prob", config.hidden_dropout_prob);
  reader.probability("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  reader.probability("classifier_dropout", config.classifier_dropout);
  reader.number("layer_norm_eps", 0, 1, config.layer_norm_eps);
  reader.number("initializer_range", 0, 1e6, config.initializer_range);
}

inline constexpr Architecture kBertArchitecture{.model_type = "bert",
                                                .class_prefix = "Bert",
                                                .names = {.base_prefix = "bert."},
                                                .modules = kBertModules,
                                                .read_config = read_bert_config};

}  // namespace finetune
