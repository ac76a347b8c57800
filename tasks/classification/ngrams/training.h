// Trains a linear model on n-grams with liblinear: one support vector machine for each label.
#pragma once

#include <cstdint>

#include "tasks/classification/ngrams/ngram_model.h"
#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

struct NgramTraining {
  ProblemType problem = ProblemType::single_label;
  int64_t outputs = 0;
  int workers = 1;  // processes that share the labels; changes no bit
  // Entries of the matrix that all labels together look at in one pass. With more labels than that
  // allows, each is told from its competitors and from a sample of the other rows.
  int64_t most_entries = 400'000'000;
};

// Of the rows that a TextRows wrote. Forks, so this process must have no other threads.
// Error(device) if a worker fails, for want of memory say.
NgramModel train_ngram_model(int rows, const NgramTraining& training);

// One output of one vector. Regression: the number. One label: the first of the largest scores.
// Several: those above 0.
std::vector<int32_t> labels_of_scores(std::span<const double> scores, ProblemType problem);

}  // namespace finetune
