// BERT (Devlin et al., 2018), as Hugging Face's modeling_bert names it.
#pragma once

#include "model/architecture.h"

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

inline constexpr Architecture kBertArchitecture{.model_type = "bert",
                                                .class_prefix = "Bert",
                                                .base_prefix = "bert.",
                                                .first_position = 0,
                                                .modules = kBertModules};

}  // namespace finetune
