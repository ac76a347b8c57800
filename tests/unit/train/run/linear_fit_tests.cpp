// The fitted head beside scikit-learn's LogisticRegression(C=10) and Ridge on scaled features.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/threads/parallel.h"
#include "train/quick/named_fit.h"

using namespace finetune;

namespace {

constexpr int kRows = 60, kWidth = 3;

struct Data {
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<int64_t> set_offsets{0};
  std::vector<int32_t> set_ids;
  TokenizedSamples samples;

  Data() {
    double mean = 0;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kWidth; ++j) {
        features.push_back(
            float((i * 37 + j * 91 + i * j * 13) % 101 / 101.0 + (i % 3 == j ? 0.5 : 0)));
      }
      labels.push_back(i % 3);
      set_ids.push_back(i % 3);
      set_offsets.push_back(i + 1);
      const float* row = &features[size_t(i * kWidth)];
      targets.push_back(row[0] * 2 - row[1] + 0.25f * float(i % 5));
      mean += double(targets.back()) / kRows;
      samples.ids.push_back(0);
      samples.offsets.push_back(i + 1);
      samples.second.push_back(1);
    }
    for (float& target : targets) target -= float(mean);
  }
  TrainingArrays arrays(ProblemType problem) const {
    TrainingArrays out;
    out.problem = problem;
    out.head = {HeadKind::sequence, problem == ProblemType::regression ? 1 : 3};
    out.samples = samples;
    if (problem == ProblemType::single_label) out.labels = labels;
    if (problem == ProblemType::regression) out.targets = targets;
    if (problem != ProblemType::multi_label) return out;
    out.set_offsets = set_offsets;
    out.set_ids = set_ids;
    return out;
  }
};

}  // namespace

TEST_CASE("the linear head is scikit-learn's, with the same bits on any number of threads") {
  const Data data;
  const TrainingArrays arrays = data.arrays(ProblemType::single_label);
  const int before = threads();
  set_threads(1);
  const LinearFit fit = fit_linear_head(data.features, kWidth, arrays);
  set_threads(3);
  const LinearFit again = fit_linear_head(data.features, kWidth, arrays);
  set_threads(before);
  CHECK(again.head.weight == fit.head.weight);
  CHECK(again.head.bias == fit.head.bias);
  CHECK(fit.loss == doctest::Approx(0.396417).epsilon(1e-3));
  const double expected[] = {3.7421,  -2.4685, -2.6029, -1.0818, 4.1413,
                             -1.3514, -2.6604, -1.6729, 3.9542};
  for (size_t i = 0; i < 9; ++i) {
    CHECK(double(fit.head.weight[i]) == doctest::Approx(expected[i]).epsilon(0.02));
  }
  CHECK(double(fit.head.bias[0] - fit.head.bias[1]) == doctest::Approx(2.0423).epsilon(0.02));
}

TEST_CASE("numbers are fitted by ridge regression, several labels each for itself") {
  const Data data;
  const LinearFit ridge =
      fit_linear_head(data.features, kWidth, data.arrays(ProblemType::regression));
  CHECK(ridge.loss == doctest::Approx(0.12437).epsilon(1e-3));
  CHECK(double(ridge.head.weight[0]) == doctest::Approx(2.0474).epsilon(0.01));
  CHECK(double(ridge.head.weight[1]) == doctest::Approx(-1.0185).epsilon(0.01));
  CHECK(double(ridge.head.bias[0]) == doctest::Approx(-0.6396).epsilon(0.02));
  const LinearFit sets =
      fit_linear_head(data.features, kWidth, data.arrays(ProblemType::multi_label));
  int right = 0;
  for (int i = 0; i < kRows; ++i) {
    for (int c = 0; c < 3; ++c) {
      double logit = double(sets.head.bias[size_t(c)]);
      for (int j = 0; j < kWidth; ++j) {
        logit += double(sets.head.weight[size_t(c * kWidth + j)]) *
                 double(data.features[size_t(i * kWidth + j)]);
      }
      right += (logit > 0) == (i % 3 == c);
    }
  }
  CHECK(right > 140);  // of 180; "none" is right for 120
}

TEST_CASE("the fit of numbers is the same on any scale") {
  Data data;
  const std::vector<float> targets = data.targets;
  const TrainingArrays whole = data.arrays(ProblemType::regression);
  const LinearFit expected = fit_linear_head(data.features, kWidth, whole);
  for (const double scale : {1e-6, 1e9}) {
    for (size_t i = 0; i < targets.size(); ++i) {
      data.targets[i] = float(scale * (double(targets[i]) + 3));
    }
    const LinearFit fit =
        fit_linear_head(data.features, kWidth, data.arrays(ProblemType::regression));
    CHECK(fit.loss / (scale * scale) == doctest::Approx(expected.loss).epsilon(1e-4));
    for (size_t i = 0; i < kWidth; ++i) {
      CHECK(double(fit.head.weight[i]) / scale ==
            doctest::Approx(double(expected.head.weight[i])).epsilon(1e-3));
    }
    CHECK(double(fit.head.bias[0]) / scale - 3 ==
          doctest::Approx(double(expected.head.bias[0])).epsilon(1e-3));
  }
}

// Each label is of 1 row in 300: the gradients of its weights are small from the start.
TEST_CASE("many rare labels are each learnt") {
  constexpr int kLabels = 300;
  std::vector<float> features;
  std::vector<int64_t> set_offsets{0};
  std::vector<int32_t> set_ids;
  TokenizedSamples samples;
  for (int i = 0; i < 2 * kLabels; ++i) {
    for (int j = 0; j < kLabels; ++j) features.push_back(i % kLabels == j ? 1.0f : 0.0f);
    set_ids.push_back(i % kLabels);
    set_offsets.push_back(i + 1);
    samples.ids.push_back(0);
    samples.offsets.push_back(i + 1);
    samples.second.push_back(1);
  }
  TrainingArrays arrays;
  arrays.problem = ProblemType::multi_label;
  arrays.head = {HeadKind::sequence, kLabels};
  arrays.samples = samples;
  arrays.set_offsets = set_offsets;
  arrays.set_ids = set_ids;
  const LinearFit fit = fit_linear_head(features, kLabels, arrays);
  int found = 0;
  for (int c = 0; c < kLabels; ++c) {
    found += fit.head.weight[size_t(c * kLabels + c)] + fit.head.bias[size_t(c)] > 0 ? 1 : 0;
  }
  CHECK(found == kLabels);
}

TEST_CASE("names that are near their labels' samples are samples, and others are left out") {
  constexpr int kLabels = 12, kColumns = 32;
  std::mt19937 draw(7);
  const auto noise = [&] { return float(draw()) / float(draw.max()) - 0.5f; };
  std::vector<float> samples, names, others(kLabels * kColumns);
  std::vector<int32_t> labels;
  for (int32_t label = 0; label < kLabels; ++label) {
    labels.push_back(label);
    for (int i = 0; i < kColumns; ++i) {
      const float center = noise();
      samples.push_back(center + noise());
      names.push_back(3 + center + noise());  // names lie elsewhere, but in the same order
    }
  }
  std::generate(others.begin(), others.end(), noise);
  TrainingArrays arrays;
  arrays.head = {HeadKind::sequence, kLabels};
  arrays.labels = labels;
  const std::vector<uint32_t> second(labels.size());
  arrays.samples.second = second;
  const auto fitted_to = [&](std::vector<float> more) {
    more.insert(more.begin(), samples.begin(), samples.end());
    return fit_named_head(more, kColumns, arrays);
  };
  const LinearFit alone = fit_linear_head(samples, kColumns, arrays);
  CHECK(fitted_to({}).head.weight == alone.head.weight);
  CHECK(fitted_to(others).head.weight == alone.head.weight);
  const LinearFit named = fitted_to(names);
  CHECK(named.has_names);
  std::vector<float> all = samples;
  all.insert(all.end(), names.begin(), names.end());
  labels.insert(labels.end(), labels.begin(), labels.end());
  const std::vector<uint32_t> twice(labels.size());
  arrays.labels = labels;
  arrays.samples.second = twice;
  CHECK(named.head.weight == fit_linear_head(all, kColumns, arrays).head.weight);
}
