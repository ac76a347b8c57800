// The object "finetune" in config.json: written by training, read as defaults.
#include "tasks/classification/model_options.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/json_value.h"
#include "data/columns/text_columns.h"
#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/classification_task.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr const char* kObject = "finetune";
// Balanced weights are between 1 / labels and the number of rows in a file.
constexpr float kLeastClassWeight = 1e-10f, kMostClassWeight = 1e10f;

// The object `finetune` of a config.json, or an empty object.
JsonValue stored_options(const EncoderConfig& config) {
  const JsonValue json = JsonValue::parse(config.source_json);
  return json[kObject].is_object() ? json[kObject] : JsonObject();
}

// Returns the value of `key`, or `otherwise` if it is missing. Error(model) if its type is wrong;
// the message names the object that it is in.
template <typename T>
T value_or(const JsonValue& object, const char* key, T otherwise, const char* inside = "") {
  if (!object.contains(key)) return otherwise;
  if (auto value = object[key].as<T>()) return *std::move(value);
  throw model_error("config.json: finetune.", inside, key, " has an unexpected type");
}

// Error(model) for one that no fit can have given.
LogitCalibration stored_calibration(const JsonValue& stored, const EncoderConfig& config) {
  LogitCalibration out;
  if (!stored.contains("calibration")) return out;
  const JsonValue& fitted = stored["calibration"];
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
void take_columns(const JsonValue& stored, TaskOptions& options) {
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
LongTexts stored_long_texts(const JsonValue& stored) {
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
std::optional<StoredMix> stored_mix(const JsonValue& stored) {
  if (!stored.contains("ngram_mix")) return {};
  const JsonValue& fitted = stored["ngram_mix"];
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
  JsonObject id2label, label2id;
  for (size_t i = 0; i < names.size(); ++i) {
    id2label.add(std::to_string(i), names[i]);
    label2id.add(names[i], i);
  }
  JsonObject own = {{"task", "classification"}, {"text_column", data.text_columns}};
  if (!options.text_pair_column.empty()) own.add("text_pair_column", options.text_pair_column);
  own.add("label_column", options.label_column);
  if (!data.number_columns.empty()) own.add("number_columns", data.number_columns);
  if (!data.category_columns.empty()) own.add("category_columns", data.category_columns);
  own.add("max_length", data.max_length);
  if (options.long_texts.in_windows) {
    own.add("long_text", kWindowsWord);
    own.add("window_stride", options.long_texts.stride);
    own.add("max_windows", options.long_texts.most_windows);
  }
  if (data.problem == ProblemType::multi_label) {
    own.add("multi_label", options.multi_label_separator);
  }
  if (options.normalizes_labels) own.add("normalize_labels", true);
  if (options.label_smoothing != 0) own.add("label_smoothing", options.label_smoothing);
  if (!class_weights.empty()) {
    own.add("class_weights", std::vector<float>(class_weights.begin(), class_weights.end()));
  }
  if (calibration != LogitCalibration()) {
    JsonObject fitted = {{"temperature", calibration.temperature}};
    if (!calibration.thresholds.empty()) fitted.add("thresholds", calibration.thresholds);
    own.add("calibration", std::move(fitted));
  }
  if (mix) {
    own.add("ngram_mix", JsonObject{{"model", mix->weights.model},
                                    {"ngrams", mix->weights.ngrams},
                                    {"sha256", mix->sha256}});
  }
  return JsonObject{{"id2label", std::move(id2label)},
                    {"label2id", std::move(label2id)},
                    {"problem_type", name_of(data.problem)},
                    {kObject, std::move(own)}}
      .text();
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
  const JsonValue stored = stored_options(config);
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
