// What distinguishes the encoders that can be fine-tuned, a row each: names of parameters, which
// embeddings there are, where positions begin. What they compute is the same (bert.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace finetune {

// What a module of the model is for, whatever an architecture calls it.
enum class Role {
  word_embeddings,
  position_embeddings,
  type_embeddings,
  embedding_norm,
  // Of each encoder layer.
  query,
  key,
  value,
  attention_output,
  attention_norm,
  inner,
  output,
  output_norm,
  // Of the head.
  pooler,
  sequence_head,
  token_head,
  // Of the head for masked words, whose decoder is the word embedding and a bias.
  masked_transform,
  masked_norm,
  masked_decoder,
};

// Of a module: LayerNorm's gamma is its weight, its beta the bias. Embeddings have no bias.
enum class ParameterPart { weight, bias };

constexpr bool is_norm(Role role) {
  return role == Role::embedding_norm || role == Role::attention_norm ||
         role == Role::output_norm || role == Role::masked_norm;
}
constexpr bool is_of_layer(Role role) {
  return role >= Role::query && role <= Role::output_norm;
}
constexpr bool is_of_head(Role role) {
  return role >= Role::pooler;
}

struct Module {
  Role role;
  std::string_view name;  // Hugging Face's; "*" stands for the number of the encoder layer
};

struct Architecture {
  std::string_view model_type;    // in config.json
  std::string_view class_prefix;  // of Hugging Face's classes: "Bert" + "ForQuestionAnswering"
  std::string_view base_prefix;   // of the encoder's parameters, where a file has it
  int64_t first_position = 0;     // row of the position embedding that a text's first token takes
  std::span<const Module> modules;

  // Whether there is such a module: type embeddings may be missing.
  bool has(Role role) const;
  // The name of a module; `layer`: 0 for the first encoder layer. A role that is not there is a
  // bug.
  std::string module_of(Role role, int64_t layer = 0) const;
};

// The first is that of files that do not name theirs.
std::span<const Architecture> all_architectures();
inline const Architecture& default_architecture() {
  return all_architectures().front();
}
// By config.json's model_type; null: unknown.
const Architecture* architecture_named(std::string_view model_type);

}  // namespace finetune
