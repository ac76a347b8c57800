// Predictions as JSON Lines: a row's own values and what was predicted, an object a line.
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.h"
#include "core/text/text.h"
#include "tasks/classification/evaluation/predictions.h"

namespace finetune {

std::vector<std::string> json_columns(const std::vector<std::string>& columns) {
  const std::unordered_set<std::string_view> taken(columns.begin(), columns.end());
  std::unordered_set<std::string> given;
  std::vector<std::string> names = columns;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || given.contains(names[i])) {
      names[i] = concat(names[i].empty() ? "column" : names[i], "_", i + 1);
      while (taken.contains(names[i])) names[i] += "_";
    }
    given.insert(names[i]);
  }
  return names;
}

void append_json_row(const std::vector<std::string>& names, std::span<const std::string_view> row,
                     const PredictionFormat& format, const float* logits, std::string& out) {
  // Not by operator[], which compares with every key before.
  nlohmann::ordered_json::object_t members;
  size_t column = 0;
  const auto add = [&](auto&& value) {
    FINETUNE_CHECK(column < names.size());
    members.emplace_back(names[column++], std::forward<decltype(value)>(value));
  };
  // As the shortest number that reads back to the same float; JSON has none that is not finite.
  const auto number = [](float value) -> nlohmann::ordered_json {
    if (!std::isfinite(value)) return nullptr;
    return nlohmann::ordered_json::parse(format_number(value));
  };
  for (std::string_view value : row) add(std::string(value));
  const auto classes = int64_t(format.labels.size());
  switch (format.problem) {
    case ProblemType::regression:
      add(number(logits[0]));
      break;
    case ProblemType::single_label: {
      const std::vector<ScoredLabel> labels =
          top_labels(logits, classes, format.top_k, format.calibration.temperature);
      for (const ScoredLabel& label : labels) {
        const bool best = &label == labels.data();
        add(best ? std::string(given_name(format, label)) : format.labels[size_t(label.id)]);
        add(number(label.probability));
      }
      if (format.min_probability) add(format.labels[size_t(labels[0].id)]);
      break;
    }
    case ProblemType::multi_label: {
      auto labels = nlohmann::ordered_json::array(), probabilities = labels;
      for (const ScoredLabel& label : positive_labels(logits, classes, format.calibration)) {
        labels.push_back(format.labels[size_t(label.id)]);
        probabilities.push_back(number(label.probability));
      }
      add(std::move(labels));
      add(std::move(probabilities));
      break;
    }
  }
  if (format.all_probabilities) {
    for (float probability : probabilities_of(format, logits)) add(number(probability));
  }
  const nlohmann::ordered_json object(std::move(members));
  out += object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  out += '\n';
}

}  // namespace finetune
