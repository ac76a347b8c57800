// MPNet (Song et al., 2020), as Hugging Face's modeling_mpnet names it: BERT's layers with a bias
// of attention by distance, RoBERTa's positions and head, no token types.
#pragma once

#include "model/architectures/roberta.h"
#include "model/config.h"

namespace finetune {

inline constexpr Module kMpnetModules[] = {
    {Role::word_embeddings, "mpnet.embeddings.word_embeddings"},
    {Role::position_embeddings, "mpnet.embeddings.position_embeddings"},
    {Role::embedding_norm, "mpnet.embeddings.LayerNorm"},
    {Role::position_bias, "mpnet.encoder.relative_attention_bias"},
    {Role::query, "mpnet.encoder.layer.*.attention.attn.q"},
    {Role::key, "mpnet.encoder.layer.*.attention.attn.k"},
    {Role::value, "mpnet.encoder.layer.*.attention.attn.v"},
    {Role::attention_output, "mpnet.encoder.layer.*.attention.attn.o"},
    {Role::attention_norm, "mpnet.encoder.layer.*.attention.LayerNorm"},
    {Role::inner, "mpnet.encoder.layer.*.intermediate.dense"},
    {Role::output, "mpnet.encoder.layer.*.output.dense"},
    {Role::output_norm, "mpnet.encoder.layer.*.output.LayerNorm"},
    {Role::pooler, "classifier.dense"},
    {Role::sequence_head, "classifier.out_proj"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "lm_head.dense"},
    {Role::masked_norm, "lm_head.layer_norm"},
    {Role::masked_decoder, "lm_head"},
};

inline void read_mpnet_config(const ConfigReader& reader, EncoderConfig& config) {
  // Hugging Face counts positions from 1, whatever pad_token_id is.
  constexpr int32_t kPadding = 1;
  int64_t buckets = kPositionBuckets;
  reader.integer("relative_attention_num_buckets", 1, kWidest, buckets);
  if (buckets != kPositionBuckets) {
    throw reader.error("relative_attention_num_buckets is ", buckets, "; only ", kPositionBuckets,
                       " can be loaded, which transformers computes for any number");
  }
  config.vocab_size = 30527;
  config.type_vocab_size = 0;
  config.pad_token_id = kPadding;
  config.embeddings = {
      .first_position = kPadding + 1, .uncounted_id = kPadding, .pair_types = false};
  config.layer.position_bias = true;
  config.head = {.input_dropout = true, .masked_gelu = true};
  read_bert_config(reader, config);
  config.pad_token_id = kPadding;
  config.classifier_dropout = -1;  // the key has no meaning here
}

inline constexpr Architecture kMpnetArchitecture{
    .model_type = "mpnet",
    .class_prefix = "MPNet",
    .names = {.base_prefix = "mpnet.",
              .bare_beginnings = kRobertaBeginnings,
              .unused = kRobertaUnused,
              .decoder_bias = "lm_head.bias",
              .other_decoder_bias = "lm_head.decoder.bias"},
    .modules = kMpnetModules,
    .pretrained_pooler = false,
    .read_config = read_mpnet_config};

}  // namespace finetune
