// Top labels and probabilities of logits, and their CSV columns.
#include "tasks/classification/evaluation/predictions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// exp((logit - highest) / temperature) of every class and their sum.
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
    while (taken(name)) name += "_";  // an input that is itself an output
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

bool begins_formula(std::string_view value) {
  if (value.empty() || std::string_view("=+-@\t\r").find(value[0]) == std::string_view::npos) {
    return false;
  }
  if (value[0] != '+' && value[0] != '-') return true;
  const std::string_view digits = value.substr(1);  // -12.5, +1,234.56, -1 234,56, -5e-3
  const size_t exponent = digits.find_first_of("eE");
  const auto has_only = [](std::string_view text, std::string_view characters) {
    return text.find_first_of("0123456789") != std::string_view::npos &&
           text.find_first_not_of(characters) == std::string_view::npos;
  };
  if (!has_only(digits.substr(0, exponent), "0123456789.,' ")) return true;
  if (exponent == std::string_view::npos) return false;
  std::string_view power = digits.substr(exponent + 1);
  if (power.starts_with('-') || power.starts_with('+')) power.remove_prefix(1);
  return !has_only(power, "0123456789");
}

void append_csv_value(std::string_view value, std::string& line, bool spreadsheet_safe) {
  const std::string_view before = spreadsheet_safe && begins_formula(value) ? "'" : "";
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += before;
    line += value;
    return;
  }
  line += '"';
  line += before;
  for (char c : value) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

void append_labels(const PredictionFormat& format, std::span<const ScoredLabel> labels,
                   std::string& line) {
  if (format.problem == ProblemType::single_label) {
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
    return;
  }
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

void append_prediction(const PredictionFormat& format, const float* logits, std::string& line) {
  int64_t classes = int64_t(format.labels.size());
  switch (format.problem) {
    case ProblemType::regression:
      line += ',';
      line += format_number(logits[0]);
      return;
    case ProblemType::single_label:
      append_labels(
          format, top_labels(logits, classes, format.top_k, format.calibration.temperature), line);
      break;
    case ProblemType::multi_label:
      append_labels(format, positive_labels(logits, classes, format.calibration), line);
      break;
  }
  if (!format.all_probabilities) return;
  for (float probability : probabilities_of(format, logits)) {
    line += ',';
    line += format_number(probability);
  }
}

}  // namespace finetune
