// The learning rate of each step by schedule kind.
#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr double kPolynomialEnd = 1e-7;  // Hugging Face's lr_end; its power is 1

}  // namespace

ScheduleKind schedule_named(std::string_view word) {
  const auto words = split(kScheduleWords, '|');
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) throw internal_error("no schedule is called ", in_quotes(word));
  return ScheduleKind(found - words.begin());
}

double Schedule::at(int64_t step) const {
  double s = double(step);
  double warmup = double(warmup_steps);
  if (step < warmup_steps) return learning_rate * (s / std::max(1.0, warmup));
  double span = std::max(1.0, double(total_steps) - warmup);
  double progress = (s - warmup) / span;
  switch (kind) {
    case ScheduleKind::constant:
      return learning_rate;
    case ScheduleKind::linear:
      return learning_rate * std::max(0.0, (double(total_steps) - s) / span);
    case ScheduleKind::cosine:
      return learning_rate * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
    case ScheduleKind::polynomial:
      if (step > total_steps) return kPolynomialEnd;
      return (learning_rate - kPolynomialEnd) * (1.0 - progress) + kPolynomialEnd;
  }
  return learning_rate;
}

int64_t evaluation_at_share(double share, int64_t total_steps, int64_t interval) {
  const int64_t evaluations = (total_steps - 1) / interval + 1;
  const auto number = std::max<int64_t>(1, int64_t(std::ceil(share * double(evaluations) - 1e-9)));
  return std::min(total_steps, number * interval);
}

std::string warmup_fault(const Schedule& s) {
  const int64_t warmup = s.warmup_steps, steps = s.total_steps;
  // A run of one step is a trial: any share of it as warm-up is the whole run.
  if (warmup < steps || (warmup == steps && steps == 1)) return "";
  const double reached = double(steps - 1) / double(warmup);
  return concat("warm-up takes ", counted(warmup, "step"), ", and the run has ", steps,
                ": the learning rate ends at ", format_fixed(100 * reached, 1),
                " % of --lr; give fewer --warmup-steps, or a --warmup-ratio such as 0.1");
}

int64_t warmup_steps_for(int64_t total_steps, double ratio) {
  const double exact = std::ceil(double(total_steps) * ratio);
  return exact < double(total_steps) ? int64_t(exact) : total_steps;
}

}  // namespace finetune
