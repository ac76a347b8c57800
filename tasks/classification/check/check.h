// Everything that `finetune check` says of rows: what is there, the baselines, the findings.
#pragma once

#include <string>
#include <vector>

#include "tasks/classification/check/findings.h"
#include "tasks/task.h"

namespace finetune {

struct DataCheck {
  ProblemType problem = ProblemType::single_label;
  int64_t train_rows = 0, eval_rows = 0, labels = 0;
  int64_t held_out_rows = 0;  // without evaluation data: for the baselines, of the training rows
  Metrics baselines;
  std::vector<std::string> lines;  // about the baselines
  Findings findings;               // the most serious first
};

// `model` null: nobody looks for texts that are cut. `options.train_files` are there;
// options.ngram_baseline says whether the n-grams are trained. Error(data), Error(usage).
DataCheck check_data(const TaskOptions& options, const CheckedModel* model = nullptr);

}  // namespace finetune
