// The encoders that can be fine-tuned, one row each: how to read config.json, and the tensors'
// names. The configuration says what an encoder's blocks compute (blocks.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/text/tensor_names.h"

namespace finetune {

// The purpose of a module of the model. Its name depends on the architecture.
enum class Role {
  word_embeddings,
  position_embeddings,
  type_embeddings,
  embedding_norm,
  embedding_projection,
  position_bias,  // of attention, which all layers share
  relative_embeddings,
  relative_norm,
  convolution,  // beside the first layer
  convolution_norm,
  // Of each encoder layer.
  query,
  key,
  value,
  position_key,  // of relative positions
  position_query,
  attention_output,
  attention_norm,
  inner,
  gate,
  output,
  output_norm,
  // After the last encoder layer.
  final_norm,
  // Of the head.
  pooler,
  head_norm,
  sequence_head,
  token_head,
  // Of the head for masked words, whose decoder is the word embedding and a bias.
  masked_transform,
  masked_norm,
  masked_decoder,
};

// A module's tensors: LayerNorm's gamma is its weight, its beta the bias. Embeddings have no bias.
enum class ParameterPart { weight, bias };

constexpr bool is_norm(Role role) {
  return role == Role::embedding_norm || role == Role::relative_norm ||
         role == Role::convolution_norm || role == Role::attention_norm ||
         role == Role::output_norm || role == Role::final_norm || role == Role::head_norm ||
         role == Role::masked_norm;
}
constexpr bool is_of_layer(Role role) {
  return role >= Role::query && role <= Role::output_norm;
}
constexpr bool is_of_head(Role role) {
  return role >= Role::pooler;
}

// Whether the weight is only used as an operand of matrix products. The word embedding is not,
// although the head for masked words multiplies by it.
constexpr bool is_product(Role role) {
  return role == Role::embedding_projection || role == Role::convolution || role == Role::pooler ||
         role == Role::sequence_head || role == Role::token_head ||
         role == Role::masked_transform || (is_of_layer(role) && !is_norm(role));
}

struct Module {
  Role role;
  // Hugging Face's name. "*" stands for the number of the encoder layer. If layers share weights,
  // the first "*" is the number of the group and the second one that of the layer in the group.
  // Roles with the same name are one tensor, with their rows one after the other: query, key and
  // value, or inner and gate.
  std::string_view name;
};

// The numbers in place of "*".
struct LayerName {
  int64_t number = 0, inner = 0;
};

class ConfigReader;
class JsonValue;
struct EncoderConfig;

struct RenamedKey {
  std::string_view before, now;
};

struct Architecture {
  std::string_view model_type;    // in config.json
  std::string_view class_prefix;  // of Hugging Face's classes: "Bert" + "ForQuestionAnswering"
  TensorNames names;              // in weight files
  std::span<const Module> modules;
  // The sequence head's dense layer is pretrained with the encoder, like BERT's pooler. If false, a
  // new head gets a new dense layer.
  bool pretrained_pooler = true;
  // transformers 5 gives the second text of a pair no type of its own unless tokenizer_config.json
  // lists token_type_ids.
  bool states_token_types = false;
  // Keys of config.json that Hugging Face's class does not read, each with the key that it reads
  // instead; exported models have both.
  std::span<const RenamedKey> renamed_keys = {};
  // Adds to an exported config.json the keys that other versions of transformers read. May be null.
  void (*add_keys_of_versions)(const EncoderConfig& config, JsonValue& json) = nullptr;
  // Reads config.json into a configuration that has the defaults of EncoderConfig.
  void (*read_config)(const ConfigReader& reader, EncoderConfig& config);

  // The name of a module; `layer`: EncoderConfig::layer_name. The architecture must have the role.
  std::string module_of(Role role, LayerName layer = {}) const;
};

// The first one is used for a config.json that names neither model_type nor a known class.
std::span<const Architecture> all_architectures();
inline const Architecture& default_architecture() {
  return all_architectures().front();
}
// The architecture of that model_type in config.json, or null.
const Architecture* architecture_named(std::string_view model_type);

}  // namespace finetune
