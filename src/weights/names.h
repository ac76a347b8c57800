// Names of BERT's tensors: what each format calls them, and Hugging Face's name for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

// Canonical names of all tensors of one file, in its order; nothing for tensors that fine-tuning
// never uses (the decoder of masked words, which is tied to the word embedding, the head for the
// next sentence, buffers of positions and types). `wrapper` (name_prefix.h) is left out where a
// name begins with it, the base prefix (BERT's: bert.) added if the file has it nowhere,
// LayerNorm.gamma/beta become weight/bias.
std::vector<std::optional<std::string>> canonical_names(const std::vector<std::string>& names,
                                                        std::string_view base_prefix,
                                                        std::string_view wrapper);

struct TensorflowName {
  std::string name;
  bool transpose = false;  // a `kernel`: {in, out} in the file
};

// A weight of a Keras file, e.g. "tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0"
// (transformers' modeling_tf_pytorch_utils).
TensorflowName from_keras_name(std::string_view name);

// A variable of a TensorFlow 1 checkpoint, e.g. "bert/encoder/layer_0/output/dense/kernel"
// (transformers' load_tf_weights_in_bert); the root's output_weights and output_bias are the
// classifier of Google's run_classifier.py, cls/squad that of run_squad.py. Nothing for the
// optimizer's variables.
std::optional<TensorflowName> from_checkpoint_name(std::string_view name);

}  // namespace finetune
