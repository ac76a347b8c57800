// Converts logits to labels and probabilities, and formats them as CSV columns.
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

// The k most probable of `classes` labels by softmax of logits / temperature, best first. Equal
// logits are in the order of the ids.
std::vector<ScoredLabel> top_labels(const float* logits, int64_t classes, int64_t k,
                                    double temperature = 1);
ScoredLabel top_label(const float* logits, int64_t classes, double temperature = 1);
// Multi-label: the labels with a logit > 0 (probability above one half) or, with thresholds, those
// that reach their threshold. Ordered by id, with their sigmoid.
std::vector<ScoredLabel> positive_labels(const float* logits, int64_t classes,
                                         const LogitCalibration& calibration = {});
std::vector<int32_t> ids_of(std::span<const ScoredLabel> labels);

// The columns that predictions add to a row:
//   single-label  label,probability, then with top_k > 1 label_2,probability_2, ...; with
//                 min_probability a less probable label is kUnsure, and best_label has its name
// multi-label   label (names joined by `separator`), probability (joined in the same way)
//   regression    label (the number)
// With all_probabilities also one "probability:NAME" per class. With an explanation also:
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
  bool explains_ngrams = false;             // also adds ngrams
};
// A line for the log if probabilities are calibrated, else "".
std::string describe_calibration(const LogitCalibration& calibration);
constexpr std::string_view kUnsure = "unsure";
// Compares in single precision, the precision of the printed probability.
inline bool is_sure(float probability, double min_probability) {
  return probability >= float(min_probability);
}
// The name to print for the best label: its own, or kUnsure.
std::string_view given_name(const PredictionFormat& format, const ScoredLabel& best);

// Returns the names of the columns that predictions add. A name that the input has becomes
// predicted_NAME, followed by "_" as long as the input has that, too.
std::vector<std::string> prediction_columns(const PredictionFormat& format,
                                            const std::vector<std::string>& input_columns);

// The probability of each class: by softmax, or with several labels by sigmoid.
std::vector<float> probabilities_of(const PredictionFormat& format, const float* logits);

// Appends ",label,probability", which follows a row's own values in CSV. `answer`: the row's
// logits, or its number.
void append_prediction(const PredictionFormat& format, const float* answer, std::string& line);

// The input's columns as keys of a JSON object. An unnamed column is "column_2" by its place, from
// 1. A repeated name gets its place: "Name_3". "_" is appended while a column has that name.
std::vector<std::string> json_columns(const std::vector<std::string>& columns);
// A JSON object in two parts: the row's own values as strings, and the prediction with the line
// end. `names`: from json_columns() or prediction_columns(). Several labels and their probabilities
// are arrays. A number that is not finite is null.
void append_json_values(std::span<const std::string> names, std::span<const std::string_view> row,
                        std::string& line);
void append_json_prediction(std::span<const std::string> names, const PredictionFormat& format,
                            const float* answer, std::string& line,
                            const Explanation* explanation = nullptr);

// The lines of an output: a row's own values, followed by its prediction.
class PredictionLines {
 public:
  // `columns`: the input's.
  PredictionLines(PredictionFormat format, const std::vector<std::string>& columns);
  std::string header() const;  // empty for JSON Lines
  // A line is written in two parts: begin() when the row is read, finish() when it is answered.
  std::string begin(std::span<const std::string_view> row) const;
  // `explanation`: needed if the format explains.
  void finish(const float* answer, std::string& line,
              const Explanation* explanation = nullptr) const;

 private:
  PredictionFormat format_;
  std::vector<std::string> columns_, predicted_;  // names in the output
};

}  // namespace finetune
