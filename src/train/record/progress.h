// How a run shows where it stands: the progress line's parts, and a row for each evaluation.
#pragma once

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
// Step and time left stay on the narrowest terminal, rates go first.
std::vector<ProgressPart> progress_parts(const RunProgress& progress);

// "predicted 8192 rows  41 %  1234 rows/s  remaining 0:12": `share` of the whole, or a negative
// number where its size is not known.
std::vector<ProgressPart> progress_parts(std::string_view verb, int64_t done, std::string_view what,
                                         double share, double seconds);
// "evaluating  41 %  remaining 0:12"
std::vector<ProgressPart> progress_parts(std::string_view verb, double share, double seconds);

struct EvaluationAt {
  int64_t step = 0;
  double epoch = 0;
  double losses = 0;     // the sum of the losses of all steps so far
  double seconds = 0;    // that the run has taken so far
  bool is_best = false;  // so far
};

// Evaluations as rows under one header: epoch, step, the mean loss of the steps since the row
// before, the evaluation's loss and two measures, the run's time. All but the time are the same in
// a run that was stopped and resumed.
class EvaluationRows {
 public:
  // `measure`: a metric that is always shown. `step`, `losses`: of the evaluation before, which a
  // resumed run has had; 0 if there was none.
  EvaluationRows(std::string measure, int64_t step, double losses);

  // The lines to log: the header before the first row, then the row.
  std::vector<std::string> add(const EvaluationAt& at, const Metrics& metrics);

 private:
  std::string measure_;
  int64_t step_;
  double losses_;
  bool has_header_ = false;
};

// The rows of a run that begins or resumes with `state`: the first one shows the mean loss since
// the last evaluation, as if the run had not stopped.
EvaluationRows rows_after(const CheckpointState& state, const std::string& measure);
// Keeps in `state` that it has been evaluated.
void keep_evaluation(CheckpointState& state);

}  // namespace finetune
