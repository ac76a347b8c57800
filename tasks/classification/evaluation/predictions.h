// Logits to labels and probabilities, and their columns in a CSV file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/classification/calibration/calibration.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

struct ScoredLabel {
  int32_t id = 0;
  float probability = 0;
};

// The k most probable of `classes` labels by softmax of logits / temperature, best first; equal
// logits by id.
std::vector<ScoredLabel> top_labels(const float* logits, int64_t classes, int64_t k,
                                    double temperature = 1);
ScoredLabel top_label(const float* logits, int64_t classes, double temperature = 1);
// Multi-label: the labels whose logit is > 0 (probability above one half), or those that reach
// their threshold, by id, with their sigmoid.
std::vector<ScoredLabel> positive_labels(const float* logits, int64_t classes,
                                         const LogitCalibration& calibration = {});
std::vector<int32_t> ids_of(std::span<const ScoredLabel> labels);

// The columns that predictions add to a row:
//   single-label  label,probability, then with top_k > 1 label_2,probability_2, ...; with
//                 min_probability the label of less is kUnsure, and best_label has what it is
//   multi-label   label (names joined by `separator`), probability (theirs, joined likewise)
//   regression    label (the number)
// and with all_probabilities one "probability:NAME" per class.
struct PredictionFormat {
  ProblemType problem = ProblemType::single_label;
  std::vector<std::string> labels;
  std::string separator = "|";
  int64_t top_k = 1;
  bool all_probabilities = false;
  LogitCalibration calibration{};
  std::optional<double> min_probability{};  // single-label
  bool spreadsheet_safe = false;            // CSV: as append_csv_value() has it
};
// For the log: that probabilities are not the model's own. Empty where they are.
std::string describe_calibration(const LogitCalibration& calibration);
constexpr std::string_view kUnsure = "unsure";
// Compared as it is printed: in single precision.
inline bool is_sure(float probability, double min_probability) {
  return probability >= float(min_probability);
}
// The name to give for the best label: its own, or kUnsure.
std::string_view given_name(const PredictionFormat& format, const ScoredLabel& best);

// Names of those columns. One that the input has already becomes predicted_NAME.
std::vector<std::string> prediction_columns(const PredictionFormat& format,
                                            const std::vector<std::string>& input_columns);

// Whether a spreadsheet would compute the cell: it begins with = + - @, a tab or a carriage return
// and is not a number.
bool begins_formula(std::string_view value);
// One value of a CSV row (RFC 4180): quoted if it holds a comma, quote or line break. With
// `spreadsheet_safe` an apostrophe is before what begins a formula.
void append_csv_value(std::string_view value, std::string& line, bool spreadsheet_safe = false);
// One row with its line end.
template <typename Values>
void append_csv_row(const Values& values, std::string& out, bool spreadsheet_safe = false) {
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ',';
    append_csv_value(value, out, spreadsheet_safe);
    first = false;
  }
  out += '\n';
}

// Of every class, by softmax or, of several labels, by sigmoid.
std::vector<float> probabilities_of(const PredictionFormat& format, const float* logits);

// An input's columns as an object's keys. Unnamed ones are "column_2" by their place, from 1; a
// name that occurs again has its place behind it, "Name_3". "_" follows if a column has that name.
std::vector<std::string> json_columns(const std::vector<std::string>& columns);
// One object with its line end. names: of json_columns() and of prediction_columns(). Own
// values are strings, as they were read; several labels and their probabilities are arrays. A
// number that is not finite is null.
void append_json_row(const std::vector<std::string>& names, std::span<const std::string_view> row,
                     const PredictionFormat& format, const float* logits, std::string& out);

// ",label,probability": what follows a row's own values.
void append_prediction(const PredictionFormat& format, const float* logits, std::string& line);
// The same from labels that were kept (single-label: one or top_k of them).
void append_labels(const PredictionFormat& format, std::span<const ScoredLabel> labels,
                   std::string& line);

}  // namespace finetune
