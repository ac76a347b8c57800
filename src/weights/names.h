// Maps the tensor names of each file format to Hugging Face's names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tensor_names.h"

namespace finetune {

// Returns the canonical names of all tensors of one file, in its order; nothing for a tensor that
// is never read (TensorNames::unused, buffers of positions and types). `wrapper` (name_prefix.h) is
// removed from names that begin with it. If no name has the base prefix, it is added.
// LayerNorm.gamma and beta become weight and bias.
std::vector<std::optional<std::string>> canonical_names(const std::vector<std::string>& stored,
                                                        const TensorNames& names,
                                                        std::string_view wrapper);

struct TensorflowName {
  std::string name;
  bool transpose = false;  // a `kernel`, stored as {in, out}
};

// Maps a Keras weight such as "tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0" (see
// modeling_tf_pytorch_utils of transformers).
TensorflowName from_keras_name(std::string_view name);

// Maps a TensorFlow 1 variable such as "bert/encoder/layer_0/output/dense/kernel" (see
// load_tf_weights_in_bert of transformers). The root's output_weights and output_bias are the
// classifier of Google's run_classifier.py, cls/squad that of run_squad.py. Returns nothing for the
// optimizer's variables.
std::optional<TensorflowName> from_checkpoint_name(std::string_view name);

}  // namespace finetune
