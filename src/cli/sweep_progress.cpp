// Lays out a sweep's progress, and shows it no more often than people can read.
#include "cli/sweep_progress.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "core/clock.h"
#include "core/terminal_line.h"
#include "core/text/printable.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr double kTerminalInterval = 0.1, kPlainInterval = 5;  // seconds
constexpr size_t kLongestName = 100;

std::string step_of(const RunProgress& progress) {
  return concat("step ", progress.step, "/", progress.steps);
}

}  // namespace

void SweepProgressLine::count_ended(const RunReport& report) {
  ++ended_;
  if (report.kept || report.status != RunStatus::finished) return;
  ++finished_;
  finished_seconds_ += report.seconds;
}

// Assumes that runs that have not begun take as long as the runs that finished in this call or, if
// there are none, as the runs at work.
double SweepProgressLine::seconds_left(const std::vector<RunAtWork>& runs) const {
  double whole = 0, left = 0;
  for (const RunAtWork& run : runs) {
    left += run.progress.seconds_left;
    whole += run.seconds + run.progress.seconds_left;
  }
  const double each =
      finished_ > 0 ? finished_seconds_ / double(finished_) : whole / double(runs.size());
  const size_t not_ended = grid_.runs.size() - std::min(ended_, grid_.runs.size());
  const auto to_begin = double(not_ended - std::min(not_ended, runs.size()));
  return (left + to_begin * each) /
         double(std::clamp<size_t>(not_ended, 1, size_t(settings_.jobs)));
}

std::vector<ProgressPart> SweepProgressLine::parts_of(const std::vector<RunAtWork>& runs) const {
  std::vector<ProgressPart> parts;
  const auto name = [&](const RunAtWork& one) {
    return printable(grid_.runs[one.run].name, kLongestName);
  };
  if (settings_.jobs == 1) {
    const RunProgress& run = runs[0].progress;
    parts = {{concat("run ", ended_ + 1, "/", grid_.runs.size()), 0},
             {name(runs[0]), 3},
             {step_of(run), 0},
             {concat("loss ", format_fixed(run.loss, 4)), 4},
             {concat("remaining ", clock_time(run.seconds_left)), 1}};
  } else {
    parts = {{concat(ended_, "/", grid_.runs.size(), " runs ended"), 0}};
    for (const RunAtWork& one : runs) {
      parts.push_back({concat(name(one), " ", step_of(one.progress)), 2});
    }
  }
  if (settings_.halving > 0) return parts;  // unknown: some runs will be dropped
  parts.push_back({concat("all runs ", clock_time(seconds_left(runs))), 1});
  return parts;
}

void SweepProgressLine::show(const std::vector<RunAtWork>& runs) {
  if (!is_shown_ || runs.empty()) return;
  const double now = seconds_now();
  if (has_terminal()) {
    if (now < next_ && !terminal_was_resized()) return;
    const auto columns = size_t(std::max(1, terminal_columns() - 1));
    draw_terminal_line(fitting_parts(parts_of(runs), columns));
    next_ = now + kTerminalInterval;
    return;
  }
  const bool is_due = next_ > 0 && now >= next_;  // not if the sweep takes seconds
  if (is_due) {
    const size_t any = std::numeric_limits<size_t>::max();
    std::fputs((fitting_parts(parts_of(runs), any) + "\n").c_str(), stderr);
  }
  if (is_due || next_ == 0) next_ = now + kPlainInterval;
}

void SweepProgressLine::erase() const {
  if (is_shown_) erase_terminal_line();
}

}  // namespace finetune
