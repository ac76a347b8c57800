// The rows of classification as `finetune check` reads them: faults in them are not errors.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/text_columns.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/labels/label_names.h"

namespace finetune {

// One side of the data. `rows` are the usable rows; texts and labels have an entry for each.
struct CheckedSide {
  std::shared_ptr<Table> table;
  TextColumns text;
  size_t label = 0;  // its column
  std::vector<uint32_t> rows;
  std::vector<std::string> texts;        // joined, including the text pair
  std::vector<std::string_view> labels;  // as in training; several: sorted, each once
  std::deque<std::string> label_sets;    // owns the texts of rows with several labels
  std::vector<uint64_t> text_sums;       // equal for equal texts
  std::vector<uint64_t> input_sums;      // equal if the columns beside the text are equal, too
  int64_t faulty = 0;                    // rows that stop training
  std::string first_fault;               // "train.csv:118: column 'text' is empty"

  size_t size() const { return rows.size(); }
  RowValues values(size_t i) const { return table->rows()[rows[i]].values; }
};

struct CheckedData {
  TaskOptions options;
  ProblemType problem = ProblemType::single_label;
  CheckedSide train, eval;
  bool has_eval = false;  // given by the user, not held out
  LabelMap labels;        // the training labels; empty for regression
  JoinedLabels joined;    // the changes of --normalize-labels
};

// options.train_files must be given. Error(data) if a file cannot be read or a column is missing,
// Error(usage) if options contradict each other.
CheckedData read_checked_data(const TaskOptions& options);

// The labels that occur in the evaluation data but not in training, sorted; empty for regression.
std::vector<std::string> unknown_labels(const CheckedData& data);

}  // namespace finetune
