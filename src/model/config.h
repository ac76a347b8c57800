// The configuration of an encoder: Hugging Face's config.json, or Google's bert_config.json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/blocks.h"
#include "model/head.h"
#include "ops/backend.h"

namespace finetune {

// Tokens of the longest input of a model without a table of positions, which sets no limit itself.
constexpr int64_t kLongestWithoutPositions = 2048;
constexpr int64_t kMostLabels = int64_t{1} << 18;

struct EncoderConfig {
  const Architecture* architecture = &default_architecture();
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;  // that are computed; some may share weights
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;  // 0: no type embeddings
  EmbeddingBlock embeddings;
  RotaryBlock rotary;
  RelativeBlock relative;
  ConvolutionBlock convolution;
  LayerBlock layer;
  HeadBlock head;
  Activation hidden_act = Activation::gelu;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = -1;  // of a sequence head; < 0: null, use hidden_dropout_prob
  double head_input_dropout = -1;  // before a sequence head's dense layer; < 0: as after it
  double token_head_dropout = 0;   // of a token head that has dropout (HeadBlock)
  double gate_dropout = 0;         // after a gated activation
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
  // > 0: new weights are truncated normal, within this many deviations (ParameterTable).
  double initializer_cutoff = 0;
  int64_t pad_token_id = 0;
  // Names of the outputs in order of id: id2label, else label2id, else num_labels default names.
  // Empty if the file has none of them, or if labels_fault says why they cannot be used. A fault is
  // an error only for commands that keep the model's own head, since others do not need the names.
  std::vector<std::string> labels;
  std::string labels_fault;
  std::string class_name;    // the first of config.json's architectures; empty: none
  std::string problem_type;  // empty, or single_label_classification, ...
  std::string source_json;   // the file as read: unknown keys survive an export

  // Tokens of the longest input: positions use the table's rows from first_position on.
  int64_t max_length() const {
    const int64_t rows = max_position_embeddings - embeddings.first_position;
    return embeddings.positions ? rows : std::max(rows, kLongestWithoutPositions);
  }
  // The lowest layer whose weights encoder layer `layer` uses: itself, unless layers share weights.
  int64_t weights_layer(int64_t layer) const;
  // Whether a higher layer uses the weights of this one.
  bool shares_above(int64_t layer) const;
  // The numbers for "*" in the names of the layer's modules.
  LayerName layer_name(int64_t layer) const;
  int64_t head_size() const { return hidden_size / num_attention_heads; }
  int64_t embedding_size() const { return has_projection() ? embeddings.narrow_size : hidden_size; }
  bool has_projection() const { return embeddings.narrow_size > 0; }  // of embeddings
  bool is_rotary() const { return rotary.theta > 0; }
  // Rows of the position embedding; 0: there is none.
  int64_t position_rows() const {
    return is_rotary() || !embeddings.positions ? 0 : max_position_embeddings;
  }
  // Rows of the feed-forward block's first weight.
  int64_t inner_rows() const { return layer.gated ? 2 * intermediate_size : intermediate_size; }
  // Whether the head reads first tokens only; the last layer is then computed only for them.
  bool reads_first_only(HeadKind kind) const { return kind == HeadKind::sequence && !head.mean; }
  bool has_dense(HeadKind kind) const {
    return kind == HeadKind::sequence || (kind == HeadKind::token && head.dense_on_tokens);
  }
  double head_dropout(HeadKind kind) const {
    if (kind == HeadKind::token) return token_head_dropout;
    return classifier_dropout >= 0 ? classifier_dropout : hidden_dropout_prob;
  }
};

// LABEL_0, LABEL_1, ...: Hugging Face's default names of outputs.
std::vector<std::string> default_labels(int64_t count);

// Error(model) naming `path`: the text is not JSON, a value is out of range, the heads do not
// divide the hidden size, the position type is relative, the activation or model_type is unknown,
// or no machine has memory for these sizes. Do not allocate memory for these sizes before weights
// of such shapes have been found.
EncoderConfig parse_config(std::string_view json, const std::filesystem::path& path);

// Shapes without weights, for benchmarks: "tiny" (2 layers, 128 wide), "minilm", "base", "large".
// Error(usage) for another name.
EncoderConfig named_shape(std::string_view name);

}  // namespace finetune
