// A text classifier as a directory that sentence-transformers loads: encoder, pooling, two layers.
//
// The encoder is Hugging Face's bare model, whose first token is pooled (1_Pooling). 2_Dense is the
// dense layer of the head, 3_Dense the classifier: encode() returns logits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/config.h"
#include "weights/weights.h"

namespace finetune {

// Error(usage) if sentence-transformers has no modules that compute the model's head.
void require_sentence_form(const EncoderConfig& config);

// Writes all but the tokenizer's files into an existing directory. `tensors`: of the encoder and
// its sequence head, under Hugging Face's names. `config_json`: of the classifier. Error(model).
void write_sentence_model(const std::filesystem::path& directory, const EncoderConfig& config,
                          const std::string& config_json, const std::vector<WeightView>& tensors,
                          DType dtype);

// Removes the modules' directories, if other files could not be written.
void remove_sentence_modules(const std::filesystem::path& directory);

}  // namespace finetune
