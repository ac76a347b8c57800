// Held-out rows: counts per stratum by hand, whole groups, the effect of the seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "data/hold_out.h"

using namespace finetune;

namespace {

// Strata of these sizes, with their rows one after the other.
std::vector<int32_t> strata_of_sizes(const std::vector<int64_t>& sizes) {
  std::vector<int32_t> strata;
  for (size_t s = 0; s < sizes.size(); ++s)
    strata.insert(strata.end(), size_t(sizes[s]), int32_t(s));
  return strata;
}

std::vector<int64_t> held_of(const std::vector<int64_t>& sizes, double fraction,
                             uint64_t seed = 1) {
  const std::vector<int32_t> strata = strata_of_sizes(sizes);
  const HoldOut parts = stratified_hold_out(strata, fraction, seed);
  std::vector<int64_t> held(sizes.size());
  for (uint32_t row : parts.eval) ++held[size_t(strata[row])];
  std::vector<uint32_t> all = parts.train;
  all.insert(all.end(), parts.eval.begin(), parts.eval.end());
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == strata.size());
  for (uint32_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == i);
  CHECK(std::is_sorted(parts.eval.begin(), parts.eval.end()));
  CHECK(std::is_sorted(parts.train.begin(), parts.train.end()));
  return held;
}

using Counts = std::vector<int64_t>;

}  // namespace

TEST_CASE("hold_out keeps the file's order and is drawn by seed") {
  HoldOut parts = hold_out(100, 0.07, 42);
  CHECK(parts.eval.size() == 7);  // 0.07 * 100 > 7 in binary
  CHECK(parts.train.size() == 93);
  CHECK(std::is_sorted(parts.eval.begin(), parts.eval.end()));
  CHECK(std::is_sorted(parts.train.begin(), parts.train.end()));
  std::vector<uint32_t> all = parts.train;
  all.insert(all.end(), parts.eval.begin(), parts.eval.end());
  std::sort(all.begin(), all.end());
  for (uint32_t i = 0; i < 100; ++i) REQUIRE(all[i] == i);
  CHECK(hold_out(100, 0.07, 42).eval == parts.eval);
  CHECK(hold_out(100, 0.07, 43).eval != parts.eval);
  CHECK(hold_out(101, 0.1, 1).eval.size() == 11);  // ceil(10.1)
  CHECK(hold_out(100, 0, 1).eval.empty());
  CHECK(hold_out(100, 1, 1).train.empty());
  CHECK(hold_out(0, 0.5, 1).eval.empty());
}

TEST_CASE("each stratum gives its share, by largest remainders") {
  CHECK(held_of({60, 30, 10}, 0.1) == Counts{6, 3, 1});
  CHECK(held_of({50, 30, 20}, 0.25) ==
        Counts{13, 7, 5});  // 12.5, 7.5, 5 of 25: ties go to the first
  CHECK(held_of({10, 0, 10}, 0.3) == Counts{3, 0, 3});
  CHECK(held_of({7}, 0.5) == Counts{4});
}

TEST_CASE("rare strata are on both sides if there is room") {
  CHECK(held_of({96, 2, 1, 1}, 0.1) == Counts{9, 1, 0, 0});  // 9.6, 0.2, 0.1, 0.1 of 10
  CHECK(held_of({2, 2, 2}, 0.5) == Counts{1, 1, 1});
  CHECK(held_of({2, 2, 2}, 0.9) == Counts{2, 2, 2});  // 6 of 6: no other rows are left
  // Five strata may take half of the held-out rows, but not more.
  CHECK(held_of({92, 2, 2, 2, 2}, 0.09) == Counts{9, 0, 0, 0, 0});
  CHECK(held_of({92, 2, 2, 2, 2}, 0.1) == Counts{6, 1, 1, 1, 1});
  CHECK(held_of({1, 1, 1, 1}, 0.5) == Counts{1, 1, 0, 0});  // only strata of one row
  CHECK(held_of({3, 1}, 0.75) == Counts{2, 1});             // 3 rows: one of each stratum is left
}

TEST_CASE("the seed draws rows inside the strata, not their numbers") {
  const std::vector<int32_t> strata = strata_of_sizes({500, 300, 200});
  const HoldOut one = stratified_hold_out(strata, 0.1, 1),
                two = stratified_hold_out(strata, 0.1, 2);
  CHECK(one.eval == stratified_hold_out(strata, 0.1, 1).eval);
  CHECK(one.eval != two.eval);
  CHECK(held_of({500, 300, 200}, 0.1, 2) == Counts{50, 30, 20});
  CHECK(stratified_hold_out({}, 0.5, 1).eval.empty());
  CHECK(stratified_hold_out(strata, 0, 1).eval.empty());
}

TEST_CASE("groups stay whole, and strata have their shares as far as groups allow") {
  // 100 groups of 1 to 10 rows; the stratum follows from the group.
  std::vector<int32_t> groups, strata;
  for (int32_t g = 0; g < 100; ++g) {
    for (int32_t k = 0; k <= g % 10; ++k) {
      groups.push_back(g);
      strata.push_back(g % 3);
    }
  }
  const HoldOut parts = grouped_hold_out(groups, strata, 0.2, 7);
  std::set<int32_t> held, kept;
  std::vector<int64_t> of_stratum(3);
  for (uint32_t row : parts.eval) {
    held.insert(groups[row]);
    ++of_stratum[size_t(strata[row])];
  }
  for (uint32_t row : parts.train) kept.insert(groups[row]);
  for (int32_t g : held) CHECK(kept.count(g) == 0);
  CHECK(held.size() + kept.size() == 100);
  CHECK(held.size() >= 15);
  CHECK(held.size() <= 25);
  CHECK(parts.eval.size() + parts.train.size() == 550);
  CHECK(parts.eval.size() >= 105);  // 110 are wanted
  CHECK(parts.eval.size() <= 115);
  for (int64_t rows : of_stratum) {  // some 183 each, 37 wanted
    CHECK(rows >= 32);
    CHECK(rows <= 42);
  }
  CHECK(grouped_hold_out(groups, strata, 0.2, 7).eval == parts.eval);
  CHECK(grouped_hold_out(groups, strata, 0.2, 8).eval != parts.eval);
}

TEST_CASE("neither side is empty, however few groups there are") {
  const std::vector<int32_t> groups = {0, 0, 0, 1, 1}, strata(5, 0);
  CHECK(grouped_hold_out(groups, strata, 0.01, 1).eval == std::vector<uint32_t>{3, 4});
  CHECK(grouped_hold_out(groups, strata, 0.99, 1).train == std::vector<uint32_t>{3, 4});
}

TEST_CASE("numbers are strata by tenths of their ranks, equal ones together") {
  std::vector<double> values;
  for (int i = 19; i >= 0; --i) values.push_back(i);
  const std::vector<int32_t> strata = strata_of_values(values);
  for (int i = 0; i < 20; ++i) CHECK(strata[size_t(19 - i)] == i / 2);
  CHECK(strata_of_values(std::vector<double>{5, 5, 5, 1}) == std::vector<int32_t>{2, 2, 2, 0});
  CHECK(strata_of_values({}).empty());
}

TEST_CASE("rows of several labels are strata by their rarest label") {
  // {0, 1}, {0}, {0, 2}, {}, {1, 2}: label 0 is there three times, the others twice.
  const std::vector<int32_t> ids = {0, 1, 0, 0, 2, 1, 2};
  const std::vector<int64_t> offsets = {0, 2, 3, 5, 5, 7};
  CHECK(strata_of_sets(ids, offsets, 3) == std::vector<int32_t>{1, 0, 2, 3, 1});
}
