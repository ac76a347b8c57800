// Writes and reads the facts that a trained classification model keeps in config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/task.h"

namespace finetune {

// Names of the outputs of the model's own head. Error(model) if it has no head, or if its
// config.json does not name the outputs.
const std::vector<std::string>& trained_labels(const EncoderConfig& config);

// {"id2label", "label2id", "problem_type", "finetune": {"task", "text_column", "text_pair_column",
//  "label_column", "number_columns", "category_columns", "max_length", "long_text",
//  "window_stride", "max_windows", "multi_label", "normalize_labels", "label_smoothing",
//  "class_weights", "calibration": {"temperature", "thresholds"}, "ngram_mix": {"model", "ngrams",
//  "sha256"}}}
std::string classification_config_json(const TaskOptions& options, const ClassificationData& data,
                                       std::span<const float> class_weights,
                                       const LogitCalibration& calibration = {},
                                       const std::optional<StoredMix>& mix = {});

// The class weights that the model was trained with, or none.
std::vector<float> stored_class_weights(const EncoderConfig& config, int64_t classes);

}  // namespace finetune
