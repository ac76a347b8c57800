// Tests of estimates over runs.
#include <doctest/doctest.h>

#include <limits>

#include "core/numeric/estimate.h"

using namespace finetune;

TEST_CASE("two-sided 95 % of Student's distribution") {
  CHECK(student_95(1) == doctest::Approx(12.706));
  CHECK(student_95(4) == doctest::Approx(2.776));
  CHECK(student_95(7) == doctest::Approx(2.365).epsilon(0.01));
  CHECK(student_95(20) == doctest::Approx(2.086).epsilon(0.01));
  CHECK(student_95(std::numeric_limits<double>::infinity()) == doctest::Approx(1.96));
  for (double degrees = 1; degrees < 500; degrees *= 1.1) {
    CHECK(student_95(degrees) >= student_95(degrees * 1.1));
  }
}

TEST_CASE("an estimate has the mean and the spread of a sample") {
  const Estimate estimate = estimate_of({1, 2, 3, 6});
  CHECK(estimate.runs == 4);
  CHECK(estimate.mean == doctest::Approx(3));
  CHECK(estimate.sd == doctest::Approx(2.160247).epsilon(1e-6));  // sqrt(14 / 3)
  CHECK(estimate_of({5}).sd == 0);
}
