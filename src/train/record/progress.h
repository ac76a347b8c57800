// Shows the progress of a run: the parts of the progress line, and a row for each evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "tasks/task.h"

namespace finetune {

struct CheckpointState;

struct RunProgress {
  int64_t step = 0, steps = 0;
  double epoch = 0;
  double loss = 0;
  double samples_per_second = 0, tokens_per_second = 0;
  double seconds_left = 0;
};
// "1:05:09", "3:20"
std::string clock_time(double seconds);
// The narrowest terminal shows step and time left; the rates are dropped first.
std::vector<ProgressPart> progress_parts(const RunProgress& progress);

// "predicted 8192 rows  41 %  1234 rows/s  remaining 0:12". `share` is the finished share of the
// whole, or negative if the size is not known.
std::vector<ProgressPart> progress_parts(std::string_view verb, int64_t done, std::string_view what,
                                         double share, double seconds);
// "evaluating  41 %  remaining 0:12"
std::vector<ProgressPart> progress_parts(std::string_view verb, double share, double seconds);

struct EvaluationAt {
  int64_t step = 0;
  double epoch = 0;
  double losses = 0;     // the sum of the losses of all steps so far
  double seconds = 0;    // of the run so far
  bool is_best = false;  // so far
};

// A line of the table of evaluations: all of it, and what a narrow terminal shows.
struct EvaluationLine {
  std::string whole, fitted;
};

// Evaluations as rows under one header: epoch, step, the mean loss of the steps since the previous
// row, the evaluation's loss and two measures, the run's time. A run that is stopped and resumed
// has the same rows, except for the time.
class EvaluationRows {
 public:
  // `measure`: a metric that is always shown. `step`, `losses`: of the last evaluation before the
  // run was resumed; 0 if there was none.
  EvaluationRows(std::string measure, int64_t step, double losses);

  // The lines to log: the header before the first row, then the row. The fitted ones leave columns
  // out that a terminal of `columns` has no room for; 0: any width.
  std::vector<EvaluationLine> add(const EvaluationAt& at, const Metrics& metrics, size_t columns);

 private:
  std::string measure_;
  int64_t step_;
  double losses_;
  bool has_header_ = false;
};

// The rows of a run that begins or resumes with `state`. The first row shows the mean loss since
// the last evaluation, as if the run had not been stopped.
EvaluationRows rows_after(const CheckpointState& state, const std::string& measure);
// Records in `state` that its step has been evaluated.
void keep_evaluation(CheckpointState& state);

}  // namespace finetune
