// Reads a finished run's predictions beside the true labels, values or answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/rows/records.h"
#include "data/squad.h"
#include "experiments/compare/run_record.h"
#include "tasks/scores/label_scores.h"
#include "tasks/scores/prediction_files.h"
#include "tasks/scores/squad_metrics.h"

namespace finetune {

// predictions.csv: the columns of the evaluation data, then the columns that the run added.
// After using the values, call table.check_intact().
struct SavedRows {
  Table table;
  size_t added = 0;  // columns at the end
  size_t label = 0;  // the column of true labels
};

// Classification: labels, numbered in order of appearance. A multi-label run has several per row;
// `names` then starts with all labels of the model, even labels that never occur.
struct SavedLabels : SavedRows {
  std::vector<std::string> names;  // by number
  LabelSets truth, predicted;      // a set for each row

  // Returns the last column: one probability per label, joined by the separator.
  std::string_view probability(size_t row) const { return table.rows()[row].values.back(); }
};
// All functions here: Error(data) if there are no predictions of the run's data, Error(model) if a
// table of the run is damaged.
SavedLabels read_saved_labels(const RunRecord& run);

struct SavedValues : SavedRows {  // regression
  std::vector<double> truth, predicted;
};
SavedValues read_saved_values(const RunRecord& run);

// predictions.json, and the evaluation file with its present content.
struct SavedAnswers {
  SquadData data;
  PredictionFile predictions;
  int rules = 1;                    // of SQuAD's version 1 or 2
  std::vector<AnswerScore> scores;  // of each question, 0 to 1
};
SavedAnswers read_saved_answers(const RunRecord& run);

// Returns an empty text if `found`, computed from the predictions, is the run's metric; else the
// error.
std::string metric_mismatch(const RunRecord& run, const std::string& metric, double found);

}  // namespace finetune
