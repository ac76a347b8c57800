// Binomial tails by hand, and promises about rows whose errors are known.
#include <doctest/doctest.h>

#include <random>

#include "tasks/classification/calibration/promise.h"

using namespace finetune;

TEST_CASE("binomial tails are exact") {
  CHECK(binomial_tail(0, 10, 0.1) == doctest::Approx(0.3486784401).epsilon(1e-12));
  CHECK(binomial_tail(2, 10, 0.1) == doctest::Approx(0.9298091736).epsilon(1e-12));
  CHECK(binomial_tail(1, 3, 0.5) == doctest::Approx(0.5).epsilon(1e-12));
  CHECK(binomial_tail(10, 10, 0.1) == 1);
  CHECK(binomial_tail(-1, 10, 0.1) == 0);
  CHECK(binomial_tail(0, 0, 0.1) == 1);
  CHECK(binomial_tail(40, 1000, 0.05) ==
        doctest::Approx(0.080636573256691).epsilon(1e-9));  // scipy 1.17.1
  CHECK(binomial_tail(0, 100'000, 0.5) == 0);               // underflows
  CHECK(binomial_tail(99'999, 100'000, 0.5) == 1);
  CHECK(least_promised_rows({0.05, 0.95}) == 59);  // 0.95^59 < 0.05
  CHECK(least_promised_rows({0.5, 0.5}) == 1);
}

namespace {

// Rows with the probabilities 0, 1/n, ... in a mixed order. Half of those below one half are wrong.
Promise promise_of(int rows, const PromiseRequest& wanted) {
  PromiseSearch search;
  std::mt19937 random(1);  // the standard says its numbers
  for (int i = 0; i < rows; ++i) {
    const auto place = int((int64_t(i) * 7919) % rows);  // 7919 is prime
    const float probability = float(place) / float(rows);
    const bool is_wrong = (random() >> 16) % 2 == 1;
    search.add(probability, probability >= 0.5f || !is_wrong);
  }
  return search.find(wanted);
}

}  // namespace

TEST_CASE("a promise covers the rows that are right, and few of the others") {
  const Promise found = promise_of(10'000, {0.05, 0.95});
  REQUIRE(found.threshold);
  // The wrong ones are half of what lies below 0.5: 5 % of all at a probability of about 0.444.
  CHECK(*found.threshold > 0.444);
  CHECK(*found.threshold < 0.47);
  CHECK(found.rows == 9000);
  CHECK(found.automatic == doctest::Approx(9000 * (1 - *found.threshold)).epsilon(0.01));
  CHECK(binomial_tail(found.wrong, found.automatic, 0.05) <= 0.05);
  CHECK(!found.needed_rows);
  // Less sure a promise covers more, a stricter one less.
  CHECK(*promise_of(10'000, {0.05, 0.6}).threshold < *found.threshold);
  CHECK(*promise_of(10'000, {0.01, 0.95}).threshold > *found.threshold);
}

TEST_CASE("without a promise the search says how many rows are needed") {
  const Promise few = promise_of(60, {0.05, 0.95});
  CHECK(!few.threshold);
  REQUIRE(few.needed_rows);
  CHECK(*few.needed_rows > 120);  // 59 right ones are half of the rows, and one in ten is a pilot
  CHECK(*few.needed_rows < 3000);
  CHECK(promise_of(int(2 * *few.needed_rows), {0.05, 0.95}).threshold);
  // Few rows that are all right, or one of them wrong, say nothing against more of them.
  for (const int rows : {1, 2, 20, 40}) {
    PromiseSearch right;
    for (int i = 0; i < rows; ++i) right.add(float(i) / float(rows), true);
    const Promise found = right.find({0.02, 0.95});
    CHECK(!found.threshold);
    REQUIRE(found.needed_rows);
    CHECK(*found.needed_rows >= 149 / 0.9);  // 0.98^149 < 0.05
    CHECK(*found.needed_rows < 400);
  }
  PromiseSearch surest_is_wrong;
  for (int i = 0; i < 30; ++i) surest_is_wrong.add(float(i) / 30, i != 29);
  REQUIRE(surest_is_wrong.find({0.02, 0.95}).needed_rows);
  CHECK(*surest_is_wrong.find({0.02, 0.95}).needed_rows > 166);
  CHECK(PromiseSearch().find({0.02, 0.95}).needed_rows == 166);
  PromiseSearch hopeless;
  for (int i = 0; i < 1000; ++i) hopeless.add(float(i) / 1000, i % 3 == 0);
  CHECK(!hopeless.find({0.05, 0.95}).threshold);
  CHECK(!hopeless.find({0.05, 0.95}).needed_rows);
  CHECK(!PromiseSearch().find({0.05, 0.95}).threshold);
}
