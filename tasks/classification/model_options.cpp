// The object "finetune" in config.json: written by training, read as defaults.
#include "tasks/classification/model_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/columns/text_columns.h"
#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/classification_task.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

using Json = nlohmann::ordered_json;
using Stored = nlohmann::json;  // finds a key without looking at all others

constexpr const char* kObject = "finetune";
// Balanced weights are between 1 / labels and the number of rows in a file.
constexpr float kLeastClassWeight = 1e-10f, kMostClassWeight = 1e10f;

// The object `finetune` of a config.json, or an empty object.
Stored stored_options(const EncoderConfig& config) {
  Stored json = Stored::parse(config.source_json, nullptr, false);
  if (json.is_object() && json.contains(kObject) && json[kObject].is_object()) {
    return json[kObject];
  }
  return Stored::object();
}

// Returns the value of `key`, or `otherwise` if it is missing. Error(model) if its type is wrong;
// the message names the object that it is in.
template <typename T>
T value_or(const Stored& object, const char* key, T otherwise, const char* inside = "") {
  if (!object.contains(key)) return otherwise;
  try {
    return object[key].get<T>();
  } catch (const Stored::exception&) {
    throw model_error("config.json: finetune.", inside, key, " has an unexpected type");
  }
}

// Error(model) for one that no fit can have given.
LogitCalibration stored_calibration(const Stored& stored, const EncoderConfig& config) {
  LogitCalibration out;
  if (!stored.contains("calibration")) return out;
  const Stored fitted = value_or(stored, "calibration", Stored::object());
  if (!fitted.is_object()) throw model_error("config.json: finetune.calibration is no object");
  out.temperature = value_or(fitted, "temperature", out.temperature, "calibration.");
  if (!(out.temperature >= kLeastTemperature && out.temperature <= kMostTemperature)) {
    throw model_error("config.json: finetune.calibration.temperature is ", out.temperature,
                      ", not from ", kLeastTemperature, " to ", kMostTemperature);
  }
  out.thresholds = value_or(fitted, "thresholds", out.thresholds, "calibration.");
  if (!out.thresholds.empty() && out.thresholds.size() != config.labels.size()) {
    throw model_error("config.json: finetune.calibration.thresholds has ", out.thresholds.size(),
                      " values for ", config.labels.size(), " labels");
  }
  for (float threshold : out.thresholds) {
    if (threshold >= 0 && threshold <= 1) continue;
    throw model_error("config.json: finetune.calibration.thresholds has ", threshold,
                      ", which is not from 0 to 1");
  }
  return out;
}

// Error(model) for names that no option can have given: options are not to blame for them.
void take_columns(const Stored& stored, TaskOptions& options) {
  options.text_columns = value_or(stored, "text_column", options.text_columns);
  options.text_pair_column = value_or(stored, "text_pair_column", options.text_pair_column);
  options.label_column = value_or(stored, "label_column", options.label_column);
  options.number_columns = value_or(stored, "number_columns", options.number_columns);
  options.category_columns = value_or(stored, "category_columns", options.category_columns);
  const std::string& label = options.label_column;
  if (label.empty()) throw model_error("config.json: finetune.label_column is empty");
  std::vector<std::string> texts = options.text_columns;
  std::sort(texts.begin(), texts.end());
  if (!texts.empty() && texts[0].empty()) {
    throw model_error("config.json: finetune.text_column has an empty name");
  }
  const auto twice = std::adjacent_find(texts.begin(), texts.end());
  if (twice != texts.end()) {
    throw model_error("config.json: finetune.text_column has ", in_quotes(*twice), " twice");
  }
  if (label == options.text_pair_column ||
      std::find(texts.begin(), texts.end(), label) != texts.end()) {
    throw model_error("config.json: finetune.label_column is ", in_quotes(label),
                      ", a text column too");
  }
}

// Error(model) for what no option can have given.
LongTexts stored_long_texts(const Stored& stored) {
  LongTexts out;
  const auto word = value_or(stored, "long_text", std::string(kCutWord));
  if (word != kCutWord && word != kWindowsWord) {
    throw model_error("config.json: finetune.long_text is ", in_quotes(word), ", neither ",
                      kCutWord, " nor ", kWindowsWord);
  }
  out.in_windows = word == kWindowsWord;
  const auto number = [&](const char* name, int64_t otherwise, double least, double most) {
    const double value = value_or(stored, name, double(otherwise));
    if (value >= least && value <= most) return int64_t(value);
    throw model_error("config.json: finetune.", name, " is ", value, ", not from ", least, " to ",
                      most);
  };
  out.stride = number("window_stride", out.stride, 0, double(kMostStride));
  out.most_windows = number("max_windows", out.most_windows, 1, double(kMostWindows));
  return out;
}

// Error(model) for weights that no fit can have given.
std::optional<StoredMix> stored_mix(const Stored& stored) {
  if (!stored.contains("ngram_mix")) return {};
  const Stored fitted = value_or(stored, "ngram_mix", Stored::object());
  if (!fitted.is_object()) throw model_error("config.json: finetune.ngram_mix is no object");
  const auto weight = [&](const char* name, double most) {
    const double value = value_or(fitted, name, -1.0, "ngram_mix.");
    if (value >= 0 && value <= most) return value;
    throw model_error("config.json: finetune.ngram_mix.", name, " is ", value, ", not from 0 to ",
                      most);
  };
  return StoredMix{{weight("model", kMostModelWeight), weight("ngrams", kMostNgramWeight)},
                   value_or(fitted, "sha256", std::string(), "ngram_mix.")};
}

}  // namespace

const std::vector<std::string>& trained_labels(const EncoderConfig& config) {
  if (!config.labels_fault.empty()) throw model_error(config.labels_fault);
  if (config.labels.empty()) {
    throw model_error("the model has no trained classification head; train one first");
  }
  return config.labels;
}

std::string classification_config_json(const TaskOptions& options, const ClassificationData& data,
                                       std::span<const float> class_weights,
                                       const LogitCalibration& calibration,
                                       const std::optional<StoredMix>& mix) {
  // For a model of one number, Hugging Face's config has one label, LABEL_0.
  std::vector<std::string> names = data.labels.names();
  if (data.problem == ProblemType::regression) names = {"LABEL_0"};
  Json id2label = Json::object(), label2id = Json::object();
  for (size_t i = 0; i < names.size(); ++i) {
    id2label[std::to_string(i)] = names[i];
    label2id[names[i]] = i;
  }
  Json own;
  own["task"] = "classification";
  own["text_column"] = data.text_columns;
  if (!options.text_pair_column.empty()) own["text_pair_column"] = options.text_pair_column;
  own["label_column"] = options.label_column;
  if (!data.number_columns.empty()) own["number_columns"] = data.number_columns;
  if (!data.category_columns.empty()) own["category_columns"] = data.category_columns;
  own["max_length"] = data.max_length;
  if (options.long_texts.in_windows) {
    own["long_text"] = kWindowsWord;
    own["window_stride"] = options.long_texts.stride;
    own["max_windows"] = options.long_texts.most_windows;
  }
  if (data.problem == ProblemType::multi_label) own["multi_label"] = options.multi_label_separator;
  if (options.normalizes_labels) own["normalize_labels"] = true;
  if (options.label_smoothing != 0) own["label_smoothing"] = options.label_smoothing;
  if (!class_weights.empty()) {
    own["class_weights"] = std::vector<float>(class_weights.begin(), class_weights.end());
  }
  if (calibration != LogitCalibration()) {
    Json fitted;
    fitted["temperature"] = calibration.temperature;
    if (!calibration.thresholds.empty()) fitted["thresholds"] = calibration.thresholds;
    own["calibration"] = std::move(fitted);
  }
  if (mix) {
    Json fitted;
    fitted["model"] = mix->weights.model;
    fitted["ngrams"] = mix->weights.ngrams;
    fitted["sha256"] = mix->sha256;
    own["ngram_mix"] = std::move(fitted);
  }
  Json json;
  json["id2label"] = std::move(id2label);
  json["label2id"] = std::move(label2id);
  json["problem_type"] = name_of(data.problem);
  json[kObject] = std::move(own);
  return json.dump();
}

std::vector<float> stored_class_weights(const EncoderConfig& config, int64_t classes) {
  auto weights = value_or(stored_options(config), "class_weights", std::vector<float>{});
  if (!weights.empty() && int64_t(weights.size()) != classes) {
    throw model_error("config.json: finetune.class_weights has ", weights.size(), " values for ",
                      classes, " labels");
  }
  for (float weight : weights) {
    if (weight >= kLeastClassWeight && weight <= kMostClassWeight) continue;
    throw model_error("config.json: finetune.class_weights has ", weight, ", which is not from ",
                      kLeastClassWeight, " to ", kMostClassWeight);
  }
  return weights;
}

TaskOptions classification_defaults(const EncoderConfig& config) {
  const Stored stored = stored_options(config);
  TaskOptions options;
  take_columns(stored, options);
  if (stored.contains("max_length")) {
    const auto length = value_or(stored, "max_length", 0.0);
    const int64_t least = least_max_length(SpecialTokens{}, !options.text_pair_column.empty());
    if (!(length >= double(least) && length <= double(config.max_length()))) {
      throw model_error("config.json: finetune.max_length is ", length, ", not from ", least,
                        " to ", config.max_length());
    }
    options.max_length = int64_t(length);
  }
  options.label_smoothing = value_or(stored, "label_smoothing", options.label_smoothing);
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    throw model_error("config.json: finetune.label_smoothing is ", options.label_smoothing,
                      ", not from 0 to below 1");
  }
  // Models from elsewhere have only a problem type. As in Hugging Face, one output without a
  // problem type means regression.
  if (config.problem_type == name_of(ProblemType::multi_label)) {
    options.multi_label_separator = value_or(stored, "multi_label", std::string("|"));
  }
  options.regression = config.problem_type == name_of(ProblemType::regression) ||
                       (config.problem_type.empty() && config.labels.size() == 1);
  options.normalizes_labels = value_or(stored, "normalize_labels", false) && !options.regression;
  options.calibration = stored_calibration(stored, config);
  options.long_texts = stored_long_texts(stored);
  options.mix = stored_mix(stored);
  if (problem_type(options) != ProblemType::single_label) {
    const char* misplaced = options.mix                    ? "ngram_mix"
                            : options.label_smoothing != 0 ? "label_smoothing"
                                                           : nullptr;
    if (misplaced) {
      throw model_error("config.json: finetune.", misplaced, " is for one label a row");
    }
  }
  return options;
}

}  // namespace finetune
