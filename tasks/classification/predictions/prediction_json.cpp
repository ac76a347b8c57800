// Formats predictions as JSON Lines: one object per line, with a row's own values first.
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/text/text.h"
#include "tasks/classification/predictions/explanation.h"
#include "tasks/classification/predictions/prediction_format.h"

namespace finetune {
namespace {

using Members = nlohmann::ordered_json::object_t;

// The members without the braces around them.
std::string text_of(Members members) {
  const nlohmann::ordered_json object(std::move(members));
  const std::string text =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

// As the shortest number that reads back to the same float; JSON has no number that is not finite.
nlohmann::ordered_json json_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  return nlohmann::ordered_json::parse(format_number(value));
}

nlohmann::ordered_json json_parts(std::span<const Explanation::Part> parts, const char* name,
                                  size_t most) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& [text, weight] : parts.first(std::min(most, parts.size()))) {
    out.push_back({{name, text}, {"weight", json_number(weight)}});
  }
  return out;
}

}  // namespace

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

// emplace_back() does not compare with the other keys, as operator[] does.
void append_json_values(std::span<const std::string> names, std::span<const std::string_view> row,
                        std::string& line) {
  FINETUNE_CHECK(names.size() == row.size());
  Members members;
  for (size_t i = 0; i < row.size(); ++i) members.emplace_back(names[i], std::string(row[i]));
  line += '{';
  line += text_of(std::move(members));
}

void append_json_prediction(std::span<const std::string> names, const PredictionFormat& format,
                            const float* answer, std::string& line,
                            const Explanation* explanation) {
  Members members;
  size_t next = 0;
  const auto add = [&](auto&& value) {
    FINETUNE_CHECK(next < names.size());
    members.emplace_back(names[next++], std::forward<decltype(value)>(value));
  };
  const auto classes = int64_t(format.labels.size());
  switch (format.problem) {
    case ProblemType::regression:
      add(json_number(answer[0]));
      break;
    case ProblemType::single_label: {
      const std::vector<ScoredLabel> labels =
          top_labels(answer, classes, format.top_k, format.calibration.temperature);
      for (const ScoredLabel& label : labels) {
        const bool best = &label == labels.data();
        add(best ? std::string(given_name(format, label)) : format.labels[size_t(label.id)]);
        add(json_number(label.probability));
      }
      if (format.min_probability) add(format.labels[size_t(labels[0].id)]);
      break;
    }
    case ProblemType::multi_label: {
      auto labels = nlohmann::ordered_json::array(), probabilities = labels;
      for (const ScoredLabel& label : positive_labels(answer, classes, format.calibration)) {
        labels.push_back(format.labels[size_t(label.id)]);
        probabilities.push_back(json_number(label.probability));
      }
      add(std::move(labels));
      add(std::move(probabilities));
      break;
    }
  }
  if (format.all_probabilities) {
    for (float probability : probabilities_of(format, answer)) add(json_number(probability));
  }
  if (explanation) {
    add(format.labels[size_t(explanation->against)]);
    add(json_number(explanation->lead));
    add(json_parts(explanation->words, "word", explanation->words.size()));
    add(json_number(explanation->rest));
    if (format.explains_ngrams) add(json_parts(explanation->ngrams, "ngram", kShownNgrams));
  }
  line += concat(",", text_of(std::move(members)), "}\n");
}

}  // namespace finetune
