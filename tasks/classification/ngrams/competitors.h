// Which rows a label has to be told from, where there are too many to be told from all of them.
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

  std::span<const int32_t> operator[](size_t row) const {
    return {ids.data() + begins[row], ids.data() + begins[row + 1]};
  }
};

// For each label the rows that another label's mean text might be taken for it: those where its own
// is among the `most` nearest, by rare n-grams alone. Ascending.
std::vector<std::vector<uint32_t>> rows_near_labels(const DesignMatrix& matrix,
                                                    const RowLabels& labels, int64_t outputs,
                                                    int64_t most);

}  // namespace finetune
