// Chooses the rows that a label is trained against, if there are too many to use all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/ngrams/design_matrix.h"

namespace finetune {

// The labels of each row: row i has ids[begins[i]] to ids[begins[i + 1] - 1].
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

// Returns for each label the most similar rows of other labels: the rows for which this label's
// mean text is among the `most` nearest, counting only rare n-grams. Ascending.
std::vector<std::vector<uint32_t>> rows_near_labels(const DesignMatrix& matrix,
                                                    const RowLabels& labels, int64_t outputs,
                                                    int64_t most);

}  // namespace finetune
