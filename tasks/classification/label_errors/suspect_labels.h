// Confident learning: which given labels do the probabilities of other folds contradict?
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/classification/label_errors/out_of_fold.h"

namespace finetune {

struct SuspectLabel {
  int64_t row = 0;
  int32_t given = 0, likely = 0;  // likely: the most probable label with rows that can be judged
  double score = 0;               // the rows are ranked by it
  // As confident learning counts errors: the likely label's probability is at least the mean
  // probability that rows with this label have for it.
  bool is_confident = false;
};

struct SuspectLabels {
  std::vector<SuspectLabel> rows;  // the surest error first; equal scores in the order of the rows
  std::vector<double> means;       // by label: of rows that have it, its mean probability
  int64_t unjudged = 0;            // rows whose label occurs in no other fold
};

// Returns the rows for which another label than theirs is the most probable, ranked by the
// probability of the given label (Northcutt, Jiang, Chuang 2021: self-confidence). The fourth root
// of the likely label's probability comes into it too: of two unlikely labels, the one that has a
// clear alternative is more often wrong.
SuspectLabels suspect_labels(const OutOfFold& rows);

}  // namespace finetune
