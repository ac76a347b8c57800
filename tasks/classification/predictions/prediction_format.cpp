// Chooses labels by logits, and appends them to a row's own values.
#include "tasks/classification/predictions/prediction_format.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/text/text.h"
#include "tasks/classification/predictions/explanation.h"

namespace finetune {
namespace {

// exp((logit - highest) / temperature) of each class, and the sum.
struct Softmax {
  const float* logits;
  double temperature;
  float highest;
  double sum = 0;

  Softmax(const float* values, int64_t classes, double heat)
      : logits(values), temperature(heat), highest(*std::max_element(values, values + classes)) {
    for (int64_t c = 0; c < classes; ++c) sum += weight(c);
  }
  double weight(int64_t c) const {
    return std::exp((double(logits[c]) - double(highest)) / temperature);
  }
  float probability(int64_t c) const { return float(weight(c) / sum); }
};

float sigmoid(float logit, double temperature) {
  return float(1.0 / (1.0 + std::exp(-double(logit) / temperature)));
}

}  // namespace

std::vector<ScoredLabel> top_labels(const float* logits, int64_t classes, int64_t k,
                                    double temperature) {
  FINETUNE_CHECK(k >= 1 && k <= classes);
  if (k == 1) return {top_label(logits, classes, temperature)};
  Softmax softmax(logits, classes, temperature);
  std::vector<int32_t> order(static_cast<size_t>(classes));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<ScoredLabel> labels;
  for (int64_t i = 0; i < k; ++i) {
    int32_t id = order[size_t(i)];
    labels.push_back({id, softmax.probability(id)});
  }
  return labels;
}

ScoredLabel top_label(const float* logits, int64_t classes, double temperature) {
  int64_t best = std::max_element(logits, logits + classes) - logits;
  return {int32_t(best), Softmax(logits, classes, temperature).probability(best)};
}

std::vector<ScoredLabel> positive_labels(const float* logits, int64_t classes,
                                         const LogitCalibration& calibration) {
  const std::vector<float>& thresholds = calibration.thresholds;
  FINETUNE_CHECK(thresholds.empty() || int64_t(thresholds.size()) == classes);
  std::vector<ScoredLabel> labels;
  for (int64_t c = 0; c < classes; ++c) {
    if (thresholds.empty() && !(logits[c] > 0)) continue;
    const float probability = sigmoid(logits[c], calibration.temperature);
    if (!thresholds.empty() && !(probability >= thresholds[size_t(c)])) continue;
    labels.push_back({int32_t(c), probability});
  }
  return labels;
}

std::string describe_calibration(const LogitCalibration& calibration) {
  if (calibration == LogitCalibration()) return {};
  return concat("probabilities are calibrated: temperature ",
                format_fixed(calibration.temperature, 3),
                calibration.thresholds.empty() ? "" : ", a threshold for each label",
                " (--no-calibration leaves them as the model has them)");
}

std::string_view given_name(const PredictionFormat& format, const ScoredLabel& best) {
  if (format.min_probability && !is_sure(best.probability, *format.min_probability)) return kUnsure;
  return format.labels[size_t(best.id)];
}

std::vector<int32_t> ids_of(std::span<const ScoredLabel> labels) {
  std::vector<int32_t> ids;
  for (const ScoredLabel& label : labels) ids.push_back(label.id);
  return ids;
}

std::vector<std::string> prediction_columns(const PredictionFormat& format,
                                            const std::vector<std::string>& input_columns) {
  std::vector<std::string> names;
  auto taken = [&](const std::string& name) {
    return std::find(input_columns.begin(), input_columns.end(), name) != input_columns.end();
  };
  auto add = [&](std::string name) {
    if (taken(name)) name = "predicted_" + name;
    while (taken(name)) name += "_";  // for an input that was itself an output
    names.push_back(std::move(name));
  };
  add("label");
  if (format.problem == ProblemType::regression) return names;
  add("probability");
  for (int64_t i = 2; i <= format.top_k; ++i) {
    add(concat("label_", i));
    add(concat("probability_", i));
  }
  if (format.min_probability) add("best_label");
  if (format.all_probabilities) {
    for (const std::string& label : format.labels) add("probability:" + label);
  }
  if (format.explains) {
    for (const char* name : {"against", "lead", "words", "rest"}) add(name);
  }
  if (format.explains_ngrams) add("ngrams");
  return names;
}

std::vector<float> probabilities_of(const PredictionFormat& format, const float* logits) {
  const auto classes = int64_t(format.labels.size());
  const bool one_of_many = format.problem == ProblemType::single_label;
  const double temperature = format.calibration.temperature;
  const Softmax softmax(logits, classes, temperature);
  std::vector<float> out;
  for (int64_t c = 0; c < classes; ++c) {
    out.push_back(one_of_many ? softmax.probability(c) : sigmoid(logits[c], temperature));
  }
  return out;
}

namespace {

// The label, or the top_k labels.
void append_top_labels(const PredictionFormat& format, std::span<const ScoredLabel> labels,
                       std::string& line) {
  for (const ScoredLabel& label : labels) {
    const bool best = &label == labels.data();
    line += ',';
    append_csv_value(best ? given_name(format, label) : format.labels[size_t(label.id)], line,
                     format.spreadsheet_safe);
    line += ',';
    line += format_number(label.probability);
  }
  if (!format.min_probability) return;
  line += ',';
  append_csv_value(format.labels[size_t(labels[0].id)], line, format.spreadsheet_safe);
}

void append_label_set(const PredictionFormat& format, std::span<const ScoredLabel> labels,
                      std::string& line) {
  std::string names, probabilities;
  for (const ScoredLabel& label : labels) {
    if (&label != labels.data()) {
      names += format.separator;
      probabilities += format.separator;
    }
    names += format.labels[size_t(label.id)];
    probabilities += format_number(label.probability);
  }
  line += ',';
  append_csv_value(names, line, format.spreadsheet_safe);
  line += ',';
  append_csv_value(probabilities, line);
}

}  // namespace

void append_prediction(const PredictionFormat& format, const float* answer, std::string& line) {
  const auto classes = int64_t(format.labels.size());
  switch (format.problem) {
    case ProblemType::regression:
      line += ',';
      line += format_number(answer[0]);
      return;
    case ProblemType::single_label:
      append_top_labels(
          format, top_labels(answer, classes, format.top_k, format.calibration.temperature), line);
      break;
    case ProblemType::multi_label:
      append_label_set(format, positive_labels(answer, classes, format.calibration), line);
      break;
  }
  if (!format.all_probabilities) return;
  for (float probability : probabilities_of(format, answer)) {
    line += ',';
    line += format_number(probability);
  }
}

namespace {

void append_explanation(const PredictionFormat& format, const Explanation& explanation,
                        std::string& line) {
  line += ',';
  append_csv_value(format.labels[size_t(explanation.against)], line, format.spreadsheet_safe);
  line += concat(",", format_number(explanation.lead), ",");
  append_csv_value(parts_in_words(explanation.words, explanation.words.size()), line,
                   format.spreadsheet_safe);
  line += concat(",", format_number(explanation.rest));
  if (!format.explains_ngrams) return;
  line += ',';
  append_csv_value(parts_in_words(explanation.ngrams, kShownNgrams), line, format.spreadsheet_safe);
}

}  // namespace

PredictionLines::PredictionLines(PredictionFormat format, const std::vector<std::string>& columns)
    : format_(std::move(format)),
      columns_(format_.json_lines ? json_columns(columns) : columns),
      predicted_(prediction_columns(format_, columns_)) {}

std::string PredictionLines::header() const {
  std::string line;
  if (format_.json_lines) return line;
  std::vector<std::string> names = columns_;
  names.insert(names.end(), predicted_.begin(), predicted_.end());
  append_csv_row(names, line, format_.spreadsheet_safe);
  return line;
}

std::string PredictionLines::begin(std::span<const std::string_view> row) const {
  std::string line;
  if (format_.json_lines) {
    append_json_values(columns_, row, line);
  } else {
    append_csv_row(row, line, format_.spreadsheet_safe);
    line.pop_back();
  }
  return line;
}

void PredictionLines::finish(const float* answer, std::string& line,
                             const Explanation* explanation) const {
  if (format_.json_lines) {
    return append_json_prediction(predicted_, format_, answer, line, explanation);
  }
  append_prediction(format_, answer, line);
  if (explanation) append_explanation(format_, *explanation, line);
  line += '\n';
}

}  // namespace finetune
