// Learning-rate schedules of Hugging Face (optimization.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace finetune {

enum class ScheduleKind { linear, cosine, constant, polynomial };
// --schedule: the words in the order of the kinds.
inline constexpr std::string_view kScheduleWords = "linear|cosine|constant|polynomial";
ScheduleKind schedule_named(std::string_view word);  // one of them; else Error(internal)

struct Schedule {
  ScheduleKind kind = ScheduleKind::linear;
  double learning_rate = 5e-5;
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;

  // The rate for update number `step` (from 0). With warm-up, the first update has rate 0.
  double at(int64_t step) const;
};

// "warm-up takes 500 steps, but the run has 100: ...", or "" if steps follow the warm-up.
std::string warmup_fault(const Schedule& schedule);

// ceil(total_steps * ratio).
int64_t warmup_steps_for(int64_t total_steps, double ratio);

// For a run that evaluates every `interval` steps and after the last step: the step of the first
// evaluation by which at least this share of the evaluations is done.
int64_t evaluation_at_share(double share, int64_t total_steps, int64_t interval);

}  // namespace finetune
