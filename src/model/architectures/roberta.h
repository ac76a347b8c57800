// RoBERTa (Liu et al., 2019), as Hugging Face's modeling_roberta names it: BERT's layers, positions
// that begin behind the padding token's, one token type, and another head.
#pragma once

#include "model/architectures/bert.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kRobertaModules[] = {
    {Role::word_embeddings, "roberta.embeddings.word_embeddings"},
    {Role::position_embeddings, "roberta.embeddings.position_embeddings"},
    {Role::type_embeddings, "roberta.embeddings.token_type_embeddings"},
    {Role::embedding_norm, "roberta.embeddings.LayerNorm"},
    {Role::query, "roberta.encoder.layer.*.attention.self.query"},
    {Role::key, "roberta.encoder.layer.*.attention.self.key"},
    {Role::value, "roberta.encoder.layer.*.attention.self.value"},
    {Role::attention_output, "roberta.encoder.layer.*.attention.output.dense"},
    {Role::attention_norm, "roberta.encoder.layer.*.attention.output.LayerNorm"},
    {Role::inner, "roberta.encoder.layer.*.intermediate.dense"},
    {Role::output, "roberta.encoder.layer.*.output.dense"},
    {Role::output_norm, "roberta.encoder.layer.*.output.LayerNorm"},
    {Role::pooler, "classifier.dense"},
    {Role::sequence_head, "classifier.out_proj"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "lm_head.dense"},
    {Role::masked_norm, "lm_head.layer_norm"},
    {Role::masked_decoder, "lm_head"},
};

inline constexpr std::string_view kRobertaBeginnings[] = {"embeddings.", "encoder.", "pooler."};
// The tied decoder, under both of its names.
inline constexpr std::string_view kRobertaUnused[] = {"lm_head.decoder.", "lm_head.weight"};

// A config.json without these keys takes the defaults of Hugging Face's class, which no published
// model has.
inline void read_roberta_config(const ConfigReader& reader, EncoderConfig& config) {
  constexpr int64_t kMostPads = int64_t{1} << 16;  // as many as positions
  config.vocab_size = 50265;
  config.pad_token_id = 1;
  reader.integer("pad_token_id", 0, kMostPads, config.pad_token_id);
  config.embeddings = {.first_position = config.pad_token_id + 1,
                       .uncounted_id = int32_t(config.pad_token_id),
                       .pair_types = false};
  config.head = {.input_dropout = true, .masked_gelu = true};
  read_bert_config(reader, config);
}

// XLM-RoBERTa and CamemBERT differ only in names.
constexpr Architecture roberta_architecture(std::string_view model_type,
                                            std::string_view class_prefix) {
  return {.model_type = model_type,
          .class_prefix = class_prefix,
          .names = {.base_prefix = "roberta.",
                    .bare_beginnings = kRobertaBeginnings,
                    .unused = kRobertaUnused,
                    .decoder_bias = "lm_head.bias",
                    .other_decoder_bias = "lm_head.decoder.bias"},
          .modules = kRobertaModules,
          .pretrained_pooler = false,
          .read_config = read_roberta_config};
}

inline constexpr Architecture kRobertaArchitecture = roberta_architecture("roberta", "Roberta");
inline constexpr Architecture kXlmRobertaArchitecture =
    roberta_architecture("xlm-roberta", "XLMRoberta");
inline constexpr Architecture kCamembertArchitecture =
    roberta_architecture("camembert", "Camembert");

}  // namespace finetune
