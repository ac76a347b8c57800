// Cuts rows into folds, so that each row can be scored by a model that was not trained on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/ngrams/confusable_rows.h"

namespace finetune {

// The number of folds of evaluation rows. Values fitted to four folds are measured on the fifth, so
// that no reported metric is of rows that it was fitted to.
inline constexpr int kFitParts = 5;

// Returns the fold of each row, from 0. Rows with equal `text_sums` are in the same fold. The
// different texts of each label are spread evenly over the folds, in the order of the rows. With
// fewer different texts than folds, some folds have no rows.
std::vector<int32_t> folds_of(std::span<const uint64_t> text_sums, const RowLabels& labels,
                              int folds);

}  // namespace finetune
