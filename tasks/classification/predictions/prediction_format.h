// Logits to labels and probabilities, and their columns in a CSV file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows/csv_line.h"
#include "tasks/calibration.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

struct Explanation;

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
//                 min_probability a less probable label is kUnsure, and best_label has its name
//   multi-label   label (names joined by `separator`), probability (theirs, joined likewise)
//   regression    label (the number)
// and with all_probabilities one "probability:NAME" per class; then those of an explanation:
//   against,lead,words,rest,ngrams (explanation.h)
struct PredictionFormat {
  ProblemType problem = ProblemType::single_label;
  std::vector<std::string> labels;
  std::string separator = "|";
  int64_t top_k = 1;
  bool all_probabilities = false;
  LogitCalibration calibration{};
  std::optional<double> min_probability{};  // single-label
  bool spreadsheet_safe = false;            // CSV: see append_csv_value()
  bool json_lines = false;                  // instead of CSV
  bool explains = false;                    // adds against, lead, words, rest
  bool explains_ngrams = false;             // and ngrams
};
// A line for the log if probabilities are not the model's own, else an empty string.
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

// Of every class: by softmax, or with several labels by sigmoid.
std::vector<float> probabilities_of(const PredictionFormat& format, const float* logits);

// ",label,probability": what follows a row's own values in CSV. `answer`: its logits, or its
// number.
void append_prediction(const PredictionFormat& format, const float* answer, std::string& line);

// An input's columns as an object's keys. An unnamed column is "column_2" by its place, from 1; a
// name that occurs again gets its place, "Name_3". "_" follows if a column has that name.
std::vector<std::string> json_columns(const std::vector<std::string>& columns);
// An object in two parts: the row's own values as strings, and the prediction with the line end.
// `names`: of json_columns() or prediction_columns(). Several labels and their probabilities are
// arrays. A number that is not finite is null.
void append_json_values(std::span<const std::string> names, std::span<const std::string_view> row,
                        std::string& line);
void append_json_prediction(std::span<const std::string> names, const PredictionFormat& format,
                            const float* answer, std::string& line,
                            const Explanation* explanation = nullptr);

// The lines of an output: a row's own values, then what was predicted.
class PredictionLines {
 public:
  // `columns`: of the input.
  PredictionLines(PredictionFormat format, const std::vector<std::string>& columns);
  std::string header() const;  // empty for JSON Lines
  // A line in two parts, which may be far apart in time.
  std::string begin(std::span<const std::string_view> row) const;
  // `explanation`: if the format explains.
  void finish(const float* answer, std::string& line,
              const Explanation* explanation = nullptr) const;

 private:
  PredictionFormat format_;
  std::vector<std::string> columns_, predicted_;  // their names in the output
};

}  // namespace finetune
