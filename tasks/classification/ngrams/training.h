// Trains a linear model on n-grams with liblinear: one support vector machine for each label.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/ngrams/ngram_model.h"
#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

struct NgramTraining {
  ProblemType problem = ProblemType::single_label;
  int64_t outputs = 0;
  ColumnCounts columns = {};  // columns after the texts
  int workers = 1;            // processes that share the labels; the result does not depend on it
  // The limit of matrix entries that one pass over all labels reads. If there were more, each label
  // is trained only against its competitors and a sample of the other rows.
  int64_t most_entries = 400'000'000;
};

// Trains on the rows of a TextRows file. Forks, so this process must not have other threads.
// Error(device) if a worker fails, for example because memory runs out.
NgramModel train_ngram_model(int rows, const NgramTraining& training);

// Scores each row by a model that was trained without the row's fold (folds.h). N-grams are counted
// in all rows, which uses no label. Returns (rows, outputs), from -kUnseenScore to kUnseenScore. A
// label that does not occur in the other folds has -kUnseenScore.
inline constexpr float kUnseenScore = 10;
std::vector<float> out_of_fold_scores(int rows, const NgramTraining& training, int folds);

// The labels for one vector of scores. One label: the first of the largest scores. Several labels:
// those with a score above 0.
std::vector<int32_t> labels_of_scores(std::span<const double> scores, ProblemType problem);

}  // namespace finetune
