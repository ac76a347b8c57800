// Margins of the linear model on n-grams for rows that it was not trained on, fold by fold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

// Returns (rows, outputs): each row is scored by a model that was trained without the row's fold,
// with weights rounded as in a file (ngram_file.h). Keeps the texts in memory. Error(device) or
// Error(model) as predict_with_ngrams().
std::vector<float> fold_margins(const TextRows& rows, std::span<const uint8_t> folds,
                                ProblemType problem, int64_t outputs);

}  // namespace finetune
