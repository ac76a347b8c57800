// Checks rows before training: counts, baselines and findings of `finetune check`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"
#include "tasks/task_traits.h"

namespace finetune {

// The most serious first: errors stop training, warnings make its result worse or too good.
enum class FindingLevel { error, warning, note };

struct Finding {
  FindingLevel level = FindingLevel::note;
  std::string kind;   // "overlap", for scripts
  std::string text;   // one line: the number, and what to do
  int64_t count = 0;  // rows, labels or columns concerned
};
using Findings = std::vector<Finding>;

inline constexpr double kHeldOutOfCheck = 0.1;  // without evaluation data and --eval-fraction

struct DataCheck {
  ProblemType problem = ProblemType::single_label;
  int64_t train_rows = 0, eval_rows = 0, labels = 0;
  int64_t held_out_rows = 0;  // without evaluation data: held out for the baselines
  Metrics baselines;
  std::vector<std::string> lines;  // about the baselines
  Findings findings;               // the most serious first
};

using WriteText = std::function<void(std::string_view text)>;

// The request to search options.train_files for wrong labels.
struct LabelErrorRequest {
  int folds = 5;
  WriteText write_errors;         // CSV of rows whose label may be wrong; null: none
  WriteText write_probabilities;  // CSV of all probabilities; null: none
};

// Checks options.train_files, which must be given, and options.eval_files. Trains the n-gram
// baseline if options.ngram_baseline. Calls on_stage before each stage ("comparing texts"). If
// `model` is null, does not search for cut texts; if `label_errors` is null, not for label errors.
// Error(data) or Error(usage).
DataCheck check_data(const TaskOptions& options, const TaskModel* model = nullptr,
                     const std::function<void(const char* stage)>& on_stage = nullptr,
                     const LabelErrorRequest* label_errors = nullptr);

}  // namespace finetune
