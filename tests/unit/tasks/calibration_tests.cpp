// Calibration: scores by hand, the temperature against a grid, thresholds, coverage.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "tasks/classification/calibration/coverage.h"
#include "tasks/classification/calibration/fit_calibration.h"
#include "tasks/classification/calibration/reliability.h"
#include "tasks/classification/calibration/thresholds.h"
#include "tasks/target_scale.h"

using namespace finetune;

namespace {

// Rows are dealt to the parts in turn.
HeldOutLogits with_parts(HeldOutLogits held) {
  for (int64_t row = 0; row < held.rows(); ++row) held.parts.push_back(uint8_t(row % kFitParts));
  return held;
}

// Two labels; the first one's logit is z, the other's 0.
HeldOutLogits two_labels(const std::vector<float>& z, std::vector<int32_t> labels) {
  HeldOutLogits held;
  held.outputs = 2;
  for (float value : z) held.logits.insert(held.logits.end(), {value, 0.0f});
  held.labels = std::move(labels);
  return with_parts(std::move(held));
}

double uniform(uint32_t i) {
  return (double(philox({1, 2}, {i, 0, 0, 0})[0]) + 0.5) / 4294967296.0;
}

// Rows of three labels whose truth is drawn by softmax(logits / heat).
HeldOutLogits drawn_rows(int64_t rows, double heat, bool several_labels) {
  HeldOutLogits held;
  held.outputs = 3;
  held.several_labels = several_labels;
  std::vector<double> probabilities;
  for (uint32_t i = 0; i < uint32_t(rows); ++i) {
    std::vector<float> logits;
    for (uint32_t c = 0; c < 3; ++c) logits.push_back(float(6 * uniform(10 * i + c) - 3));
    held.logits.insert(held.logits.end(), logits.begin(), logits.end());
    probabilities_at(logits, several_labels, heat, probabilities);
    if (several_labels) {
      std::vector<int32_t> set;
      for (uint32_t c = 0; c < 3; ++c) {
        if (uniform(10 * i + 5 + c) < probabilities[c]) set.push_back(int32_t(c));
      }
      held.sets.push_back(set);
      continue;
    }
    const double at = uniform(10 * i + 5);
    held.labels.push_back(at < probabilities[0]                      ? 0
                          : at < probabilities[0] + probabilities[1] ? 1
                                                                     : 2);
  }
  return with_parts(std::move(held));
}

}  // namespace

TEST_CASE("calibration error and Brier score of one label a row, by hand") {
  Reliability scores(3, false);
  // Bin 0.8: 0.8 right, 0.85 wrong; bin 0.5: 0.5 right.
  scores.add(std::vector<double>{0.8, 0.1, 0.1}, 0);
  scores.add(std::vector<double>{0.1, 0.85, 0.05}, 2);
  scores.add(std::vector<double>{0.3, 0.2, 0.5}, 2);
  // |1 - 1.65| + |1 - 0.5|, over 3 rows
  CHECK(scores.calibration_error() == doctest::Approx(1.15 / 3).epsilon(1e-8));
  const double squares = (0.04 + 0.01 + 0.01) + (0.01 + 0.7225 + 0.9025) + (0.09 + 0.04 + 0.25);
  CHECK(scores.brier_score() == doctest::Approx(squares / 3).epsilon(1e-8));
  // A true label outside of the outputs: no row predicted it.
  Reliability unknown(2, false);
  unknown.add(std::vector<double>{0.75, 0.25}, 2);
  CHECK(unknown.brier_score() == doctest::Approx(0.5625 + 0.0625 + 1).epsilon(1e-8));
  CHECK(unknown.calibration_error() == doctest::Approx(0.75).epsilon(1e-8));
  // Probability 1 is in the last bin.
  Reliability sure(2, false);
  sure.add(std::vector<double>{1, 0}, 0);
  CHECK(sure.calibration_error() == 0);
  CHECK(sure.brier_score() == 0);
  CHECK(Reliability(2, false).calibration_error() == 0);
}

TEST_CASE("calibration error and Brier score of several labels are means over labels") {
  Reliability scores(2, true);
  scores.add(std::vector<double>{0.9, 0.2}, std::vector<int32_t>{0});
  scores.add(std::vector<double>{0.6, 0.4}, std::vector<int32_t>{1, 5});  // 5 is no output
  // label 0: |1 - 0.9| + |0 - 0.6|; label 1: |0 - 0.2| + |1 - 0.4|; over 2 rows and 2 labels
  CHECK(scores.calibration_error() == doctest::Approx(1.5 / 4).epsilon(1e-8));
  CHECK(scores.brier_score() == doctest::Approx((0.01 + 0.04 + 0.36 + 0.36) / 4).epsilon(1e-8));
}

TEST_CASE("no order of the rows changes a bit of the scores") {
  const HeldOutLogits held = drawn_rows(500, 1, false);
  Reliability forward(3, false), backward(3, false);
  std::vector<double> p;
  for (int64_t i = 0; i < 500; ++i) {
    probabilities_at(held.row(i), false, 1, p);
    forward.add(p, held.labels[size_t(i)]);
    probabilities_at(held.row(499 - i), false, 1, p);
    backward.add(p, held.labels[size_t(499 - i)]);
  }
  CHECK(forward.calibration_error() == backward.calibration_error());
  CHECK(forward.brier_score() == backward.brier_score());
}

TEST_CASE("the temperature matches a closed form and a fine grid") {
  // All logits are z or -z, 3 of 4 right: sigmoid(z / T) = 3 / 4 at T = z / ln 3.
  const HeldOutLogits held = two_labels({4, 4, 4, 4, -4, -4, -4, -4}, {0, 0, 0, 1, 1, 1, 1, 0});
  CHECK(best_temperature(held, {}) == doctest::Approx(4 / std::log(3.0)).epsilon(1e-9));
  CHECK(negative_log_likelihood(held, {}, 1) ==
        doctest::Approx((3 * std::log1p(std::exp(-4.0)) + 4 + std::log1p(std::exp(-4.0))) / 4));

  for (bool several_labels : {false, true}) {
    const HeldOutLogits rows = drawn_rows(3000, 1.7, several_labels);
    const double best = best_temperature(rows, {});
    CHECK(best > 1.5);
    CHECK(best < 1.9);
    double least = 1e9, at = 0;
    for (double t = 1; t < 2.5; t += 0.001) {
      const double value = negative_log_likelihood(rows, {}, t);
      if (value < least) {
        least = value;
        at = t;
      }
    }
    CHECK(std::abs(best - at) <= 0.001);
    CHECK(negative_log_likelihood(rows, {}, best) <= least);
    const RowChoice first{RowChoice::Of::others, 0}, second{RowChoice::Of::others, 1};
    CHECK(best_temperature(rows, first) != best_temperature(rows, second));
  }
}

TEST_CASE("temperatures stay in their bounds") {
  CHECK(best_temperature(two_labels({1, 1}, {0, 0}), {}) == kLeastTemperature);  // never wrong
  CHECK(best_temperature(two_labels({1, 1}, {1, 1}), {}) == kMostTemperature);   // always
}

TEST_CASE("a fit is judged on rows it has not seen, and needs enough of them") {
  const CalibrationFit fit = fit_calibration(drawn_rows(2000, 2, false), {}, false);
  CHECK(fit.calibration.temperature == doctest::Approx(2).epsilon(0.1));
  CHECK(fit.metrics.at("eval_temperature") == fit.calibration.temperature);
  CHECK(fit.metrics.at("eval_ece_calibrated") < 0.05);
  CHECK(fit.metrics.size() == calibration_metric_names(false).size());
  for (const std::string& name : calibration_metric_names(false)) CHECK(fit.metrics.contains(name));

  const CalibrationFit few = fit_calibration(drawn_rows(199, 2, false), {}, false);
  CHECK(few.calibration == LogitCalibration());
  CHECK(few.metrics.empty());
  CHECK(few.report.line.starts_with(
      "not calibrated: this needs 200 evaluation rows and 5 wrong ones; there are 199 and "));
  // Enough rows, none of which is wrong.
  std::vector<float> z(300, 2.0f);
  CHECK(fit_calibration(two_labels(z, std::vector<int32_t>(300, 0)), {}, false).metrics.empty());
  // One text alone has no other rows to be judged by.
  HeldOutLogits same = drawn_rows(2000, 2, false);
  same.parts.assign(2000, 3);
  CHECK(fit_calibration(same, {}, false).report.line ==
        "not calibrated: all 2000 evaluation rows have the same text");
  // Nothing to gain: the truth is drawn at temperature 1, and the parts may disagree.
  const CalibrationFit none = fit_calibration(drawn_rows(2000, 1, false), {}, false);
  CHECK(std::abs(none.calibration.temperature - 1) < 0.1);
}

TEST_CASE("thresholds have the highest F1 of each label") {
  HeldOutLogits held;
  held.outputs = 3;
  held.several_labels = true;
  // Label 0: probabilities 0.9 yes, 0.4 yes, 0.3 no, 0.2 no: F1 is 1 between 0.3 and 0.4. Label 1:
  // 0.9 no, 0.8 yes, 0.7 yes, 0.6 no: the first three, F1 0.8. Label 2: no row has it.
  const double p[4][3] = {{0.9, 0.9, 0.6}, {0.4, 0.8, 0.6}, {0.3, 0.7, 0.6}, {0.2, 0.6, 0.6}};
  for (const auto& row : p) {
    for (double value : row) held.logits.push_back(float(std::log(value / (1 - value))));
  }
  for (const std::vector<int32_t>& set : {std::vector<int32_t>{0}, {0, 1}, {1}, {}}) {
    held.sets.push_back(set);
  }
  std::vector<float> best = best_thresholds(held, {}, 1, 1);
  CHECK(best[0] == doctest::Approx(0.35));
  CHECK(best[1] == doctest::Approx(0.65));
  CHECK(best[2] == 0.5f);
  CHECK(best_thresholds(held, {}, 1, 3) == std::vector<float>{0.5f, 0.5f, 0.5f});

  const CalibrationFit fit = fit_calibration(drawn_rows(1000, 1, true), {}, true);
  CHECK(fit.calibration.thresholds.size() == 3);
  CHECK(fit.metrics.size() == calibration_metric_names(true).size());
  for (const std::string& name : calibration_metric_names(true)) CHECK(fit.metrics.contains(name));
  CHECK(fit.metrics.at("eval_f1_macro_tuned") > 0.5);
}

TEST_CASE("a threshold has to hold on rows it was not fitted to") {
  // Label 0: given from 0.3 on it is always right, so that one half misses half of it. Label 1: it
  // has nothing to do with its probability, which is low: the best threshold gives it to all.
  HeldOutLogits held;
  held.outputs = 2;
  held.several_labels = true;
  for (uint32_t i = 0; i < 1000; ++i) {
    const bool has = i % 5 < 2;
    const double p = has ? 0.3 + 0.4 * uniform(3 * i) : 0.2 * uniform(3 * i);
    const double q = 0.01 + 0.02 * uniform(3 * i + 1);
    for (double value : {p, q}) held.logits.push_back(float(std::log(value / (1 - value))));
    std::vector<int32_t> set;
    if (has) set.push_back(0);
    if (uniform(3 * i + 5000) < 0.02) set.push_back(1);
    held.sets.push_back(set);
  }
  held = with_parts(std::move(held));
  CHECK(best_thresholds(held, {}, 1, 5)[1] < 0.1f);
  const TunedThresholds tuned = tuned_thresholds(held, {1, 1, 1, 1, 1}, 1, 5);
  CHECK(tuned.thresholds[0] == doctest::Approx(0.25).epsilon(0.1));
  CHECK(tuned.thresholds[1] == 0.5f);
  CHECK(tuned.tuned == 1);
  CHECK(tuned.before.classes[0].f1 < 0.9);
  CHECK(tuned.after.classes[0].f1 > 0.99);
  CHECK(tuned.after.f1.micro > tuned.before.f1.micro);
  CHECK(tuned.after.classes[1].predicted == 0);
  const CalibrationFit few = fit_calibration(drawn_rows(199, 2, true), {}, true);
  CHECK(few.report.line.starts_with(
      "warning: no thresholds, not calibrated: this needs 200 evaluation rows"));
  CHECK(few.report.line.find("there are 199 and ") != std::string::npos);
}

TEST_CASE("rows with a label that the model does not know count, and nothing is fitted to them") {
  const HeldOutLogits held = drawn_rows(1000, 1.5, false);
  HeldOutLogits unknown = drawn_rows(500, 1.5, false);
  unknown.labels.assign(500, 3);
  const CalibrationFit known = fit_calibration(held, {}, false);
  const CalibrationFit all = fit_calibration(held, unknown, false);
  CHECK(all.calibration == known.calibration);
  // All probabilities are wrong: 500 of 1500 rows differ from them.
  CHECK(all.metrics.at("eval_ece_calibrated") > known.metrics.at("eval_ece_calibrated") + 0.15);
  CHECK(all.metrics.at("eval_brier_calibrated") > known.metrics.at("eval_brier_calibrated"));
}

TEST_CASE("the threshold for a wanted accuracy covers as many rows as can be") {
  CoverageCurve curve;
  // From the top: right, right, wrong, right, wrong.
  const std::vector<std::pair<float, bool>> rows = {
      {0.9f, true}, {0.8f, true}, {0.7f, false}, {0.6f, true}, {0.5f, false}};
  for (const auto& [probability, right] : rows) curve.add(probability, right);
  CHECK(curve.rows() == 5);
  auto point = curve.threshold_for(1);
  REQUIRE(point);
  CHECK(point->covered.rows == 2);
  CHECK(point->threshold == doctest::Approx(0.70001));
  point = curve.threshold_for(0.75);  // 3 of 4, although 2 of 3 are less
  CHECK(point->covered.rows == 4);
  CHECK(point->threshold == doctest::Approx(0.50001));
  CHECK(curve.threshold_for(0.6)->threshold == 0);
  // A threshold covers the same rows as --min-probability: the comparison is in single precision.
  CoverageCurve edge;
  edge.add(0.1f, false);
  edge.add(0.3f, true);
  CHECK(edge.threshold_for(1)->threshold == doctest::Approx(0.10001));
  CoverageCurve wrong;
  wrong.add(1.0f, false);
  CHECK(!wrong.threshold_for(0.5));
  CHECK(!CoverageCurve().threshold_for(0));
}

TEST_CASE("the lower bound is Wilson's") {
  CHECK(lower_bound({0, 0}) == 0);
  // 90 of 100, one-sided 95 %: (0.9 + z^2/200 - z sqrt(0.09/100 + z^2/40000)) / (1 + z^2/100)
  CHECK(lower_bound({100, 90}) == doctest::Approx(0.8396445).epsilon(1e-5));
  CHECK(lower_bound({10, 10}) == doctest::Approx(1 / (1 + 2.705543454 / 10)).epsilon(1e-6));
}

TEST_CASE("targets are learnt by their mean and the nearest power of two") {
  const TargetScale scale = scale_of(std::vector<double>{10, 14, 18});  // deviation 3.27
  CHECK(scale.mean == 14);
  CHECK(scale.scale == 4);
  CHECK(scale.learnt(18) == 1);
  CHECK(scale.number(-1) == 10);
  // Of equal numbers the rounding of their mean is no deviation.
  CHECK(scale_of(std::vector<double>(50, 0.1)).scale == 1);
  CHECK(scale_of(std::vector<double>{0, 2.6}).scale == 1);      // 1.3: nearer to 1
  CHECK(scale_of(std::vector<double>{0, 3}).scale == 2);        // 1.5: nearer to 2
  CHECK(scale_of(std::vector<double>{0, 0.2}).scale == 0.125);  // 0.1
  CHECK(scale_of(std::vector<double>{5, 5}).mean == 5);
  CHECK(scale_of(std::vector<double>{5, 5}).scale == 1);
  CHECK(scale_of(std::vector<double>{-1, 1}).is_identity());
  CHECK_THROWS_AS(scale_of(std::vector<double>{1e300, -1e300}), Error);
  CHECK_THROWS_AS(scale_of(std::vector<double>{1e31, 1e31}), Error);
  CHECK(scale_of(std::vector<double>{-1e29, 1e29}).scale == doctest::Approx(1e29).epsilon(0.5));
  CHECK(scale_of({}).is_identity());
}
