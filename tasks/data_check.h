// What `finetune check` says of rows before training: counts, baselines and findings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tasks/task.h"
#include "tasks/task_traits.h"

namespace finetune {

// Most serious first: an error stops training, a warning spoils or flatters its result.
enum class FindingLevel { error, warning, note };

struct Finding {
  FindingLevel level = FindingLevel::note;
  std::string kind;   // "overlap", for scripts
  std::string text;   // one line: the figure and what to do
  int64_t count = 0;  // rows, labels or columns that it is about
};
using Findings = std::vector<Finding>;

struct DataCheck {
  ProblemType problem = ProblemType::single_label;
  int64_t train_rows = 0, eval_rows = 0, labels = 0;
  int64_t held_out_rows = 0;  // without evaluation data: training rows held out for the baselines
  Metrics baselines;
  std::vector<std::string> lines;  // about the baselines
  Findings findings;               // the most serious first
};

// Checks options.train_files, which must be given, and options.eval_files. `model` null: does not
// look for texts that are cut. Trains the n-gram baseline if options.ngram_baseline. Calls on_stage
// before each stage ("comparing texts"). Error(data) or Error(usage).
DataCheck check_data(const TaskOptions& options, const TaskModel* model = nullptr,
                     const std::function<void(const char* stage)>& on_stage = nullptr);

}  // namespace finetune
