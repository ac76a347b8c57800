// Batches whose best choice one can work out, doubts, and labels that a head gains and loses.
#include <doctest/doctest.h>

#include <cmath>

#include "tasks/classification/next_rows/batch_choice.h"
#include "tasks/classification/next_rows/doubt.h"
#include "tasks/classification/rows/head_labels.h"

using namespace finetune;
using Places = std::vector<size_t>;

TEST_CASE("a batch stands for many texts before it takes another one like them") {
  const std::vector<ChoiceCandidate> texts{{"coffee shop toronto 1", 1},
                                           {"coffee shop toronto 2", 1},
                                           {"coffee shop toronto 3", 1},
                                           {"parking lot", 1.5},
                                           {"rent", 0.5}};
  const Places all = choose_batch(texts, 9);
  REQUIRE(all.size() == 5);
  CHECK(all[0] <= 2);  // with its two neighbours it weighs more than the parking lot
  CHECK(Places{all[1], all[2]} == Places{3, 4});
  CHECK(choose_batch(texts, 2) == Places{all[0], all[1]});
  CHECK(choose_batch({}, 3).empty());
  // Without n-grams in common the weight alone decides, and of equal weights the first place.
  CHECK(choose_batch(std::vector<ChoiceCandidate>{{"aa", 0}, {"bb", 2}, {"!", 3}, {"cc", 2}}, 4) ==
        Places{2, 1, 3});  // no weight: nothing to gain
}

TEST_CASE("of texts of the same n-grams one is chosen") {
  const std::vector<ChoiceCandidate> texts{
      {"coffee shop", 2}, {"Coffee  shop", 1}, {"coffee shop", 1}, {"rent", 0.1}};
  CHECK(choose_batch(texts, 9) == Places{0, 3});
}

TEST_CASE("the heaviest texts are looked at") {
  std::vector<ChoiceCandidate> texts;
  for (int i = 0; i < 100; ++i) texts.push_back({"the same text", 1.0 + i});
  CHECK(choose_batch(texts, 1) == Places{99});
}

TEST_CASE("doubt is the distance of two labels, or of a decision to its threshold") {
  const std::vector<std::string> names{"a", "b", "c"};
  const std::vector<float> logits{float(std::log(0.3)), float(std::log(0.6)), float(std::log(0.1))};
  const Doubt one = doubt_of(logits, ProblemType::single_label, {});
  CHECK(one.likely == std::vector<int32_t>{1});
  CHECK(one.doubt == doctest::Approx(0.7));
  CHECK(describe_doubt(one, ProblemType::single_label, names) == "'b' 60 % or 'a' 30 %");
  const std::vector<float> sure{0, 9, 0};
  CHECK(describe_doubt(doubt_of(sure, ProblemType::single_label, {}), ProblemType::single_label,
                       names) == "probably 'b' (100 %)");
  // Probabilities 0.9, 0.75 and 0.25; the last one is nearest to its threshold of 0.2.
  const std::vector<float> several{float(std::log(9)), float(std::log(3)), float(-std::log(3))};
  LogitCalibration calibration;
  calibration.thresholds = {0.5, 0.5, 0.2F};
  const Doubt nearest = doubt_of(several, ProblemType::multi_label, calibration);
  CHECK(nearest.likely == std::vector<int32_t>{0, 1, 2});
  CHECK(nearest.other == 2);
  CHECK(nearest.doubt == doctest::Approx(1 - 0.05 / 0.8));
  CHECK(describe_doubt(nearest, ProblemType::multi_label, names) == "has 'c' with 25 %");
}

TEST_CASE("a head keeps the order of its labels") {
  const std::vector<std::string> own{"c", "a", "b"}, data{"a", "d", "e"};
  const HeadLabels extended = head_labels(own, data, true, false);
  CHECK(extended.labels == std::vector<std::string>{"c", "a", "b", "d", "e"});
  CHECK(extended.rows == std::vector<int32_t>{0, 1, 2, -1, -1});
  CHECK(extended.idle == std::vector<std::string>{"c", "b"});
  const HeadLabels exact = head_labels(own, data, true, true);
  CHECK(exact.labels == std::vector<std::string>{"a", "d", "e"});
  CHECK(exact.rows == std::vector<int32_t>{1, -1, -1});
  CHECK(exact.dropped == std::vector<std::string>{"c", "b"});
  CHECK(head_labels(own, {"a"}, true, false).rows.empty());
  CHECK(head_labels(own, data, false, true).labels == std::vector<std::string>{"a"});
}
