// Predictions as JSON Lines: a row's own values and what was predicted, an object a line.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tasks/classification/evaluation/predictions.h"

namespace finetune {

void append_json_row(const std::vector<std::string>& names, std::span<const std::string_view> row,
                     const PredictionFormat& format, const float* logits, std::string& out) {
  nlohmann::ordered_json object;
  size_t column = 0;
  const auto add = [&](auto&& value) {
    FINETUNE_CHECK(column < names.size());
    object[names[column++]] = std::forward<decltype(value)>(value);
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
  out += object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  out += '\n';
}

}  // namespace finetune
