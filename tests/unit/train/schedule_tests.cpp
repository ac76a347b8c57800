// Learning rates compared with transformers.
#include <doctest/doctest.h>
#include <simdjson.h>

#include <limits>
#include <vector>

#include "../shared.h"
#include "train/schedule.h"

using namespace finetune;

namespace {

Schedule make(ScheduleKind kind) {
  return {kind, 5e-5, 3, 10};
}

void check_rates(const Schedule& schedule, const std::vector<double>& expected) {
  for (size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(step);
    CHECK(schedule.at(int64_t(step)) == doctest::Approx(expected[step]).epsilon(1e-14));
  }
}

}  // namespace

// Printed by transformers 4.57.1: get_*_schedule_with_warmup(optimizer, 3, 10) at lr 5e-5, twelve
// steps (get_last_lr() before each).
TEST_CASE("schedules equal those of transformers") {
  check_rates(make(ScheduleKind::linear),
              {0.0, 1.6666666666666667e-05, 3.3333333333333335e-05, 5e-05, 4.2857142857142856e-05,
               3.571428571428572e-05, 2.857142857142857e-05, 2.1428571428571428e-05,
               1.4285714285714285e-05, 7.142857142857143e-06, 0.0, 0.0});
  check_rates(make(ScheduleKind::cosine),
              {0.0, 1.6666666666666667e-05, 3.3333333333333335e-05, 5e-05, 4.752422169756048e-05,
               4.058724504646834e-05, 3.056302334890786e-05, 1.9436976651092144e-05,
               9.412754953531663e-06, 2.475778302439524e-06, 0.0, 2.4757783024395215e-06});
  check_rates(make(ScheduleKind::constant),
              {0.0, 1.6666666666666667e-05, 3.3333333333333335e-05, 5e-05, 5e-05, 5e-05, 5e-05});
  check_rates(
      make(ScheduleKind::polynomial),
      {0.0, 1.6666666666666667e-05, 3.3333333333333335e-05, 5e-05, 4.287142857142858e-05,
       3.574285714285714e-05, 2.861428571428571e-05, 2.1485714285714288e-05, 1.4357142857142855e-05,
       7.228571428571432e-06, 9.999999999999998e-08, 9.999999999999998e-08});
}

TEST_CASE("without warm-up the first step has the full rate and the last is not zero") {
  Schedule schedule{ScheduleKind::linear, 1.0, 0, 4};
  CHECK(schedule.at(0) == 1.0);
  CHECK(schedule.at(3) == 0.25);
  CHECK(schedule.at(4) == 0.0);
}

TEST_CASE("warm-up that does not end in the run is told, with the rate that is reached") {
  const auto fault = [](int64_t warmup, int64_t steps) {
    return warmup_fault({ScheduleKind::linear, 5e-5, warmup, steps});
  };
  CHECK(fault(0, 100).empty());
  CHECK(fault(99, 100).empty());
  CHECK(fault(1, 1).empty());
  CHECK(
      fault(500, 100).starts_with("warm-up takes 500 steps, and the run has 100: the learning "
                                  "rate ends at 19.8 % of --lr"));
  CHECK(fault(100, 100).starts_with("warm-up takes 100 steps"));
  CHECK(fault(2, 1).starts_with("warm-up takes 2 steps"));
}

TEST_CASE("warm-up over the whole run") {
  Schedule schedule{ScheduleKind::linear, 1.0, 4, 4};
  CHECK(schedule.at(0) == 0.0);
  CHECK(schedule.at(3) == 0.75);
  CHECK(schedule.at(4) == 0.0);
}

// math.ceil(total * ratio), as TrainingArguments.get_warmup_steps.
TEST_CASE("warm-up steps are rounded up") {
  CHECK(warmup_steps_for(7, 0.1) == 1);
  CHECK(warmup_steps_for(150, 0.1) == 15);
  CHECK(warmup_steps_for(8211, 0.06) == 493);
  CHECK(warmup_steps_for(1000, 0.07) == 70);
  CHECK(warmup_steps_for(0, 0.1) == 0);
  CHECK(warmup_steps_for(3, 1.0) == 3);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();  // not a double
  CHECK(warmup_steps_for(kMost, 1.0) == kMost);
}

TEST_CASE("the rates of the golden trajectories") {
  for (const char* name : {"golden/trajectory-classification.json", "golden/trajectory-qa.json"}) {
    if (!test::have_shared(name)) continue;
    CAPTURE(name);
    simdjson::dom::parser parser;
    simdjson::dom::element json = parser.load(test::shared_path(name).string());
    simdjson::dom::array steps = json["steps"];
    int64_t total = int64_t(steps.size());
    Schedule schedule{ScheduleKind::linear, double(json["lr"]),
                      warmup_steps_for(total, double(json["warmup_ratio"])), total};
    int64_t step = 0;
    for (simdjson::dom::element entry : steps) {
      CAPTURE(step);
      CHECK(schedule.at(step) == doctest::Approx(double(entry["lr"])).epsilon(1e-14));
      ++step;
    }
    CHECK(step > 0);
  }
}
