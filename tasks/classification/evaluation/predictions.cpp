// Top labels and probabilities of logits, and their CSV columns.
#include "tasks/classification/evaluation/predictions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// exp(logit - highest) of every class and their sum.
struct Softmax {
  const float* logits;
  float highest;
  double sum = 0;

  Softmax(const float* values, int64_t classes)
      : logits(values), highest(*std::max_element(values, values + classes)) {
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(double(values[c]) - double(highest));
  }
  float probability(int64_t c) const {
    return float(std::exp(double(logits[c]) - double(highest)) / sum);
  }
};

float sigmoid(float logit) {
  return float(1.0 / (1.0 + std::exp(-double(logit))));
}

}  // namespace

std::vector<ScoredLabel> top_labels(const float* logits, int64_t classes, int64_t k) {
  FINETUNE_CHECK(k >= 1 && k <= classes);
  Softmax softmax(logits, classes);
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

ScoredLabel top_label(const float* logits, int64_t classes) {
  int64_t best = std::max_element(logits, logits + classes) - logits;
  return {int32_t(best), Softmax(logits, classes).probability(best)};
}

std::vector<ScoredLabel> positive_labels(const float* logits, int64_t classes) {
  std::vector<ScoredLabel> labels;
  for (int64_t c = 0; c < classes; ++c) {
    if (logits[c] > 0) labels.push_back({int32_t(c), sigmoid(logits[c])});
  }
  return labels;
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
  if (format.all_probabilities) {
    for (const std::string& label : format.labels) add("probability:" + label);
  }
  return names;
}

std::vector<float> probabilities_of(const PredictionFormat& format, const float* logits) {
  const auto classes = int64_t(format.labels.size());
  const bool one_of_many = format.problem == ProblemType::single_label;
  const Softmax softmax(logits, classes);
  std::vector<float> out;
  for (int64_t c = 0; c < classes; ++c) {
    out.push_back(one_of_many ? softmax.probability(c) : sigmoid(logits[c]));
  }
  return out;
}

void append_csv_value(std::string_view value, std::string& line) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += value;
    return;
  }
  line += '"';
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
      line += ',';
      append_csv_value(format.labels[size_t(label.id)], line);
      line += ',';
      line += format_number(label.probability);
    }
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
  append_csv_value(names, line);
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
      append_labels(format, top_labels(logits, classes, format.top_k), line);
      break;
    case ProblemType::multi_label:
      append_labels(format, positive_labels(logits, classes), line);
      break;
  }
  if (!format.all_probabilities) return;
  for (float probability : probabilities_of(format, logits)) {
    line += ',';
    line += format_number(probability);
  }
}

}  // namespace finetune
