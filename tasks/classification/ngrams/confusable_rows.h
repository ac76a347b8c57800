// Chooses the rows that a label is trained against, if there are too many for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/ngrams/design_matrix.h"

namespace finetune {

// The labels of each row, by id: row i has [begins[i], begins[i + 1]).
struct RowLabels {
  std::vector<uint64_t> begins{0};
  std::vector<int32_t> ids;

  void add(std::span<const int32_t> row) {
    ids.insert(ids.end(), row.begin(), row.end());
    begins.push_back(ids.size());
  }
  std::span<const int32_t> operator[](size_t row) const {
    return {ids.data() + begins[row], ids.data() + begins[row + 1]};
  }
};

// Returns for each label the rows of other labels that are most like it: rows for which the label's
// mean text is among the `most` nearest, by rare n-grams alone. Ascending.
std::vector<std::vector<uint32_t>> rows_near_labels(const DesignMatrix& matrix,
                                                    const RowLabels& labels, int64_t outputs,
                                                    int64_t most);

}  // namespace finetune
