// How a run shows where it stands: the progress line's parts, an evaluation's table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "tasks/task.h"

namespace finetune {

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

// "evaluation at step 375, epoch 3.00, the best so far", then a line a metric.
std::vector<std::string> evaluation_table(int64_t step, double epoch, bool is_best,
                                          const Metrics& metrics);

}  // namespace finetune
