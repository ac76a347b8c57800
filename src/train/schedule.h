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

  // The rate used in the update number `step` (0 for the first): with warm-up the first is 0.
  double at(int64_t step) const;
};

// "warm-up takes 500 steps, but the run has 100: ...", or nothing if the run goes on after it.
std::string warmup_fault(const Schedule& schedule);

// ceil(total_steps * ratio).
int64_t warmup_steps_for(int64_t total_steps, double ratio);

// Of a run that evaluates every `interval` steps and after the last: the step of the first
// evaluation that has at least this share of them behind it, itself counted.
int64_t evaluation_at_share(double share, int64_t total_steps, int64_t interval);

}  // namespace finetune
