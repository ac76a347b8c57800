// Shows a sweep's progress on standard error: one line that is rewritten on a terminal, or a plain
// line every few seconds.
#pragma once

#include <string>
#include <vector>

#include "core/log.h"
#include "experiments/sweep/sweep.h"

namespace finetune {

class SweepProgressLine {
 public:
  SweepProgressLine(const Grid& grid, const SweepSettings& settings, bool is_shown)
      : grid_(grid), settings_(settings), is_shown_(is_shown) {}

  // Shows "run 2/6  lr=1e-4,seed=2  step 40/120  loss 0.5012  remaining 0:12  all runs 3:20". With
  // several runs at a time, shows "2/6 runs ended" and the step of each.
  void show(const std::vector<RunAtWork>& runs);
  void count_ended(const RunReport& report);
  void erase() const;  // before anything else is written to the terminal

 private:
  std::vector<ProgressPart> parts_of(const std::vector<RunAtWork>& runs) const;
  double seconds_left(const std::vector<RunAtWork>& runs) const;

  const Grid& grid_;
  const SweepSettings& settings_;
  bool is_shown_;
  double next_ = 0;  // when the next line is due, by seconds_now()
  size_t ended_ = 0, finished_ = 0;
  double finished_seconds_ = 0;
};

}  // namespace finetune
