// Confident learning: finds labels that contradict the probabilities from the other folds.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/classification/label_errors/out_of_fold.h"

namespace finetune {

struct SuspectLabel {
  int64_t row = 0;
  int32_t given = 0, likely = 0;  // likely: the most probable label that has judged rows
  double score = 0;               // the rows are ranked by it
  // Confident learning counts the row as an error: the likely label's probability is at least its
  // mean probability over the rows that have this label.
  bool is_confident = false;
};

struct SuspectLabels {
  std::vector<SuspectLabel> rows;  // the most certain error first; ties in the order of the rows
  std::vector<double> means;       // by label: its mean probability over the rows that have it
  int64_t unjudged = 0;            // rows whose label occurs in no other fold
};

// Returns the rows whose most probable label is another one. They are ranked by the probability of
// the given label (Northcutt, Jiang, Chuang 2021: self-confidence), and by the fourth root of the
// likely label's probability: of two improbable labels, the one with a clear alternative is more
// often wrong.
SuspectLabels suspect_labels(const OutOfFold& rows);

}  // namespace finetune
