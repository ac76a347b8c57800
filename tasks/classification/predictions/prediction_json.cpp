// Formats predictions as JSON Lines: one object per line, with a row's own values first.
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/text/json_value.h"
#include "core/text/text.h"
#include "tasks/classification/predictions/explanation.h"
#include "tasks/classification/predictions/prediction_format.h"

namespace finetune {
namespace {

// As the shortest number that reads back to the same float; JSON has no number that is not finite.
JsonValue json_number(float value) {
  const std::string text = format_number(value);
  if (const auto whole = parse_int(text)) return *whole;
  return parse_double(text);
}

JsonArray json_parts(std::span<const Explanation::Part> parts, const char* name, size_t most) {
  JsonArray out;
  for (const auto& [text, weight] : parts.first(std::min(most, parts.size()))) {
    out.add(JsonObject{{name, text}, {"weight", json_number(weight)}});
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

void append_json_values(std::span<const std::string> names, std::span<const std::string_view> row,
                        std::string& line) {
  FINETUNE_CHECK(names.size() == row.size());
  JsonObject members;
  for (size_t i = 0; i < row.size(); ++i) members.add(names[i], row[i]);
  line += members.text();
  line.pop_back();
}

void append_json_prediction(std::span<const std::string> names, const PredictionFormat& format,
                            const float* answer, std::string& line,
                            const Explanation* explanation) {
  JsonObject members;
  size_t next = 0;
  const auto add = [&](const JsonValue& value) {
    FINETUNE_CHECK(next < names.size());
    members.add(names[next++], value);
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
        add(best ? given_name(format, label) : format.labels[size_t(label.id)]);
        add(json_number(label.probability));
      }
      if (format.min_probability) add(format.labels[size_t(labels[0].id)]);
      break;
    }
    case ProblemType::multi_label: {
      JsonArray labels, probabilities;
      for (const ScoredLabel& label : positive_labels(answer, classes, format.calibration)) {
        labels.add(format.labels[size_t(label.id)]);
        probabilities.add(json_number(label.probability));
      }
      add(labels);
      add(probabilities);
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
  line += "," + members.text().substr(1) + "\n";
}

}  // namespace finetune
