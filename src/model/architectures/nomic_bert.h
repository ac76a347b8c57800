// nomic_bert (Nussbaum et al., Nomic Embed, 2024): BERT's layers, gated and with rotary positions.
// Names are those of published files; Hugging Face's modeling_nomic_bert saves with them, too.
#pragma once

#include "core/text/json_value.h"
#include "core/text/text.h"
#include "model/architectures/config_reader.h"
#include "model/config.h"

namespace finetune {

// A gated block computes f(inner) * gate. In these files `fc12` is the name of `inner`.
inline constexpr Module kNomicBertModules[] = {
    {Role::word_embeddings, "nomic_bert.embeddings.word_embeddings"},
    {Role::type_embeddings, "nomic_bert.embeddings.token_type_embeddings"},
    {Role::embedding_norm, "nomic_bert.emb_ln"},
    {Role::query, "nomic_bert.encoder.layers.*.attn.Wqkv"},
    {Role::key, "nomic_bert.encoder.layers.*.attn.Wqkv"},
    {Role::value, "nomic_bert.encoder.layers.*.attn.Wqkv"},
    {Role::attention_output, "nomic_bert.encoder.layers.*.attn.out_proj"},
    {Role::attention_norm, "nomic_bert.encoder.layers.*.norm1"},
    {Role::inner, "nomic_bert.encoder.layers.*.mlp.fc12"},
    {Role::gate, "nomic_bert.encoder.layers.*.mlp.fc11"},
    {Role::output, "nomic_bert.encoder.layers.*.mlp.fc2"},
    {Role::output_norm, "nomic_bert.encoder.layers.*.norm2"},
    {Role::pooler, "nomic_bert.pooler.dense"},
    {Role::sequence_head, "classifier"},
    {Role::token_head, "qa_outputs"},
    {Role::masked_transform, "cls.predictions.transform.dense"},
    {Role::masked_norm, "cls.predictions.transform.layer_norm"},
    {Role::masked_decoder, "cls.predictions"},
};

// Keys of the first published models.
inline constexpr RenamedKey kNomicBertKeys[] = {{"n_embd", "hidden_size"},
                                                {"n_layer", "num_hidden_layers"},
                                                {"n_head", "num_attention_heads"},
                                                {"n_inner", "intermediate_size"},
                                                {"n_positions", "max_position_embeddings"},
                                                {"layer_norm_epsilon", "layer_norm_eps"},
                                                {"resid_pdrop", "hidden_dropout_prob"},
                                                {"attn_pdrop", "attention_probs_dropout_prob"},
                                                {"rotary_emb_base", "rope_theta"}};

inline constexpr std::string_view kNomicBertBeginnings[] = {"embeddings.", "emb_ln.", "encoder.",
                                                            "pooler."};

// Checks options that only the first code for these models has.
inline void require_nomic_options(const ConfigReader& reader, int64_t head_size) {
  for (const char* key : {"prenorm", "parallel_block", "use_rms_norm", "rotary_emb_interleaved",
                          "causal", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"}) {
    if (reader.flag(key)) throw reader.error(key, " is true; only false can be loaded");
  }
  for (const char* key : {"rotary_scaling_factor", "rotary_emb_scale_base"}) {
    double factor = 0;
    reader.number(key, -1e12, 1e12, factor);
    if (factor != 0) throw reader.error(key, " is ", factor, "; only null can be loaded");
  }
  double fraction = 1;
  reader.number("rotary_emb_fraction", -1e12, 1e12, fraction);
  if (fraction != 1) {
    throw reader.error("rotary_emb_fraction is ", fraction, "; only 1 can be loaded");
  }
  const std::string function = reader.text("activation_function", "swiglu");
  if (function != "swiglu") {
    throw reader.error("activation_function is ", in_quotes(function),
                       "; only 'swiglu' can be loaded");
  }
  int64_t stated = head_size;
  reader.integer("head_dim", 1, kWidest, stated);
  if (stated != head_size || head_size % 2 != 0) {
    throw reader.error("attention heads have ", stated, " columns; only hidden_size / ",
                       "num_attention_heads = ", head_size, ", if that is even, can be loaded");
  }
}

inline void read_nomic_rotation(const ConfigReader& reader, EncoderConfig& config) {
  constexpr double kLeast = 1, kMost = 1e12;
  reader.number({"rope_theta", "rotary_emb_base"}, kLeast, kMost, config.rotary.theta);
  for (std::string_view key : {"type", "rope_type"}) {
    const std::string_view path[] = {"rope_scaling", key};
    const std::string kind = reader.text_at(path, "default");
    if (kind != "default") {
      throw reader.error("rope_scaling has ", in_quotes(kind), "; only 'default' can be loaded");
    }
  }
  const std::string_view theta[] = {"rope_parameters", "rope_theta"};
  const std::string_view type[] = {"rope_parameters", "rope_type"};
  reader.number_at(theta, kLeast, kMost, config.rotary.theta);
  const std::string kind = reader.text_at(type, "default");
  if (kind != "default") {
    throw reader.error("rope_type is ", in_quotes(kind), "; only 'default' can be loaded");
  }
}

inline void read_nomic_dropouts(const ConfigReader& reader, EncoderConfig& config) {
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  reader.probability({"hidden_dropout_prob", "resid_pdrop"}, config.hidden_dropout_prob);
  reader.probability({"attention_probs_dropout_prob", "attn_pdrop"},
                     config.attention_probs_dropout_prob);
  reader.probability("classifier_dropout", config.classifier_dropout);
  double embeddings = config.hidden_dropout_prob;
  reader.probability("embd_pdrop", embeddings);
  if (embeddings != config.hidden_dropout_prob) {
    throw reader.error("embd_pdrop is ", embeddings, " and the layers' dropout ",
                       config.hidden_dropout_prob, "; only equal ones can be loaded");
  }
}

inline void read_nomic_bert_config(const ConfigReader& reader, EncoderConfig& config) {
  config.vocab_size = 30528;
  config.max_position_embeddings = 2048;
  config.layer = {.gated = true, .attention_bias = false, .inner_bias = false};
  config.hidden_act = Activation::silu;
  // Before read_sizes: rotary models have no position embedding.
  config.rotary.theta = 1000;
  reader.integer("n_positions", 1, kWidest, config.max_position_embeddings);
  int64_t width = 768;
  reader.integer("n_embd", 1, kWidest / 4, width);
  config.intermediate_size = 4 * width;  // the first code's value if n_inner is null
  read_sizes(reader,
             {.hidden = {"hidden_size", "n_embd"},
              .layers = {"num_hidden_layers", "n_layer"},
              .heads = {"num_attention_heads", "n_head"},
              .inner = {"intermediate_size", "n_inner"}},
             config);
  require_nomic_options(reader, config.head_size());
  read_nomic_rotation(reader, config);
  read_nomic_dropouts(reader, config);
  reader.activation("hidden_act", config.hidden_act);
  reader.number({"layer_norm_eps", "layer_norm_epsilon"}, 0, 1, config.layer_norm_eps);
  reader.number("initializer_range", 0, 1e6, config.initializer_range);
}

// An n_inner of null means four times the hidden size, which transformers does not know.
inline void add_nomic_keys(const EncoderConfig& config, JsonValue& json) {
  if (!json["intermediate_size"].as<int64_t>()) {
    json.set("intermediate_size", config.intermediate_size);
  }
}

inline constexpr Architecture kNomicBertArchitecture{
    .model_type = "nomic_bert",
    .class_prefix = "NomicBert",
    .names = {.base_prefix = "nomic_bert.", .bare_beginnings = kNomicBertBeginnings},
    .modules = kNomicBertModules,
    .renamed_keys = kNomicBertKeys,
    .add_keys_of_versions = add_nomic_keys,
    .read_config = read_nomic_bert_config};

}  // namespace finetune
