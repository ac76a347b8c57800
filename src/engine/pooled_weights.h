// A frozen encoder with a linear head, as weights of a plain model that transformers loads.
//
// transformers' BertForSequenceClassification reads the first token. To pool by mean, the model
// gets one more encoder layer: its queries and keys are zero, so that every token attends to all
// tokens alike; its values are a large multiple of the layer's input, so that the first token's own
// state disappears beside the mean, and LayerNorm scales what is left. Its feed-forward block adds
// nothing. The head's dense layer passes each feature on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/head.h"
#include "weights/weights.h"

namespace finetune {

enum class Pooling { mean, first };  // the mean of all tokens' last states; the first token's state
// How this model pools. Without the added layer its head reads the first token.
Pooling pooling_of(const EncoderConfig& config);

// Whether the dense layer of the model's head can pass features on to the last layer.
bool can_pass_on(const EncoderConfig& config);

// The value of --pooling. `automatic` is the mean, unless the encoder cannot get the layer or was
// trained with its first token (sentence-transformers' 1_Pooling/config.json).
enum class PoolingChoice { automatic, first, mean };

// Returns `config`, of the model in `directory`. If the mean is chosen, adds the layer that pools
// by mean, unless the model has it already. Error(usage): the head cannot pass features on, or the
// encoder cannot pool as chosen.
EncoderConfig with_pooling(EncoderConfig config, const std::filesystem::path& directory,
                           PoolingChoice choice = PoolingChoice::automatic);
// Returns `config` without the mark of an added layer, for a run that trains all layers.
EncoderConfig without_pooling(EncoderConfig config);

// The last layer's weight (outputs, hidden size) and bias (outputs) on pooled features.
struct LinearHead {
  std::vector<float> weight, bias;

  static LinearHead identity(int64_t size);  // its outputs are the features
};

// Returns the weights of `encoder` with pooling layer, dense layer and head. `config` comes from
// with_pooling(). `encoder` must outlive the result.
std::unique_ptr<WeightSource> pooled_weights(const WeightSource& encoder,
                                             const EncoderConfig& config, const LinearHead& head);

}  // namespace finetune
