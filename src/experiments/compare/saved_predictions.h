// What a finished run has predicted of each row or question, beside what is right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/rows/records.h"
#include "data/squad.h"
#include "experiments/compare/run_record.h"
#include "tasks/classification/evaluation/metrics.h"
#include "tasks/qa/evaluation/prediction_files.h"
#include "tasks/qa/evaluation/squad_metrics.h"

namespace finetune {

// predictions.csv: the rows of the evaluation data, and at their end the columns that the run has
// added. Whoever has used the values asks table.check_intact().
struct SavedRows {
  Table table;
  size_t added = 0;  // columns at the end
  size_t label = 0;  // the column of what is right
};

// Classification by labels, numbered as they come; several a row where the run is multi-label,
// whose labels that never occur are there too.
struct SavedLabels : SavedRows {
  std::vector<std::string> names;  // by number
  LabelSets truth, predicted;      // a set for each row

  // The last column: one probability, or with several labels theirs joined by the separator.
  std::string_view probability(size_t row) const { return table.rows()[row].values.back(); }
};
SavedLabels read_saved_labels(const RunRecord& run);  // Error(data), as the others here

struct SavedValues : SavedRows {  // regression
  std::vector<double> truth, predicted;
};
SavedValues read_saved_values(const RunRecord& run);

// predictions.json, and the evaluation file as it is now.
struct SavedAnswers {
  SquadData data;
  PredictionFile predictions;
  int rules = 1;                    // of SQuAD's version 1 or 2
  std::vector<AnswerScore> scores;  // of each question, 0 to 1
};
SavedAnswers read_saved_answers(const RunRecord& run);

// Empty if `found`, which follows from predictions, is the run's metric; else what is wrong.
std::string metric_mismatch(const RunRecord& run, const std::string& metric, double found);

}  // namespace finetune
