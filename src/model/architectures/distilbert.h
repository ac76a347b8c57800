// DistilBERT (Sanh et al., 2019), as Hugging Face's modeling_distilbert names it: BERT's layers
// without token types, without dropout after attention's output, and with other heads.
#pragma once

#include "model/architectures/config_reader.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kDistilBertModules[] = {
    {Role::word_embeddings, "distilbert.embeddings.word_embeddings"},
    {Role::position_embeddings, "distilbert.embeddings.position_embeddings"},
    {Role::embedding_norm, "distilbert.embeddings.LayerNorm"},
    {Role::query, "distilbert.transformer.layer.*.attention.q_lin"},
    {Role::key, "distilbert.transformer.layer.*.attention.k_lin"},
    {Role::value, "distilbert.transformer.layer.*.attention.v_lin"},
    {Role::attention_output, "distilbert.transformer.layer.*.attention.out_lin"},
    {Role::attention_norm, "distilbert.transformer.layer.*.sa_layer_norm"},
    {Role::inner, "distilbert.transformer.layer.*.ffn.lin1"},
    {Role::output, "distilbert.transformer.layer.*.ffn.lin2"},
    {Role::output_norm, "distilbert.transformer.layer.*.output_layer_norm"},
    {Role::pooler, "pre_classifier"},
    {Role::sequence_head, "classifier"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "vocab_transform"},
    {Role::masked_norm, "vocab_layer_norm"},
    {Role::masked_decoder, "vocab_projector"},
};

inline constexpr std::string_view kDistilBertBeginnings[] = {"embeddings.", "transformer."};
inline constexpr std::string_view kDistilBertUnused[] = {"vocab_projector.weight"};  // is tied

// BERT's names of the sizes are read, too: other programs write them, and transformers reads them.
inline void read_distilbert_config(const ConfigReader& reader, EncoderConfig& config) {
  config.num_hidden_layers = 6;
  config.type_vocab_size = 0;
  config.layer.attention_output_dropout = false;
  config.head = {.activation = Activation::relu, .token_dropout = true};
  config.classifier_dropout = 0.2;
  config.token_head_dropout = 0.1;
  read_sizes(reader,
             {.hidden = {"dim", "hidden_size"},
              .layers = {"n_layers", "num_hidden_layers"},
              .heads = {"n_heads", "num_attention_heads"},
              .inner = {"hidden_dim", "intermediate_size"}},
             config);
  reader.activation({"activation", "hidden_act"}, config.hidden_act);
  reader.probability({"dropout", "hidden_dropout_prob"}, config.hidden_dropout_prob);
  reader.probability({"attention_dropout", "attention_probs_dropout_prob"},
                     config.attention_probs_dropout_prob);
  reader.probability("seq_classif_dropout", config.classifier_dropout);
  reader.probability("qa_dropout", config.token_head_dropout);
  reader.number("initializer_range", 0, 1e6, config.initializer_range);
}

inline constexpr Architecture kDistilBertArchitecture{
    .model_type = "distilbert",
    .class_prefix = "DistilBert",
    .names = {.base_prefix = "distilbert.",
              .bare_beginnings = kDistilBertBeginnings,
              .unused = kDistilBertUnused,
              .decoder_bias = "vocab_projector.bias",
              .other_decoder_bias = {}},
    .modules = kDistilBertModules,
    .pretrained_pooler = false,
    .read_config = read_distilbert_config};

}  // namespace finetune
