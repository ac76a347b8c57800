// Linear models on n-grams, and their use as baselines and in mixes.
#include <doctest/doctest.h>

#include "core/text/text.h"
#include "tasks/baseline.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/ngrams/training.h"

using namespace finetune;

namespace {

struct Sample {
  const char* text;
  std::vector<int32_t> labels;
  double target = 0;
};

const std::vector<Sample> kSamples = {
    {"red apple pie", {0}, 1},      {"green apple tart", {0}, 1}, {"apple juice", {0}, 1.5},
    {"hammer and nails", {1}, 9},   {"steel hammer", {1}, 9.5},   {"claw hammer set", {1}, 9},
    {"flight to ottawa", {3}, 400}, {"night flight", {3}, 410},   {"flight home", {3}, 405}};

NgramModel trained(const NgramTraining& training) {
  TextRows rows;
  for (const Sample& sample : kSamples) rows.add(sample.text, sample.labels, sample.target);
  rows.flush();
  return train_ngram_model(rows.descriptor(), training);
}

std::vector<std::vector<double>> scores_of(const NgramTraining& training) {
  NgramModel model = trained(training);
  std::vector<std::vector<double>> scores;
  for (const Sample& sample : kSamples) {
    const auto own = model.score(sample.text);
    scores.emplace_back(own.begin(), own.end());
  }
  return scores;
}

}  // namespace

TEST_CASE("rows of text read back as they were written, whatever their size") {
  TextRows rows;
  const std::string large(200'000, 'x');
  rows.add("one", std::vector<int32_t>{7}, 0.5);
  rows.add(large, std::vector<int32_t>{1, 2, 3});
  rows.add("", {});
  rows.flush();
  CHECK(rows.size() == 3);
  for (int again = 0; again < 2; ++again) {
    TextRowReader reader(rows.descriptor());
    TextRow row;
    REQUIRE(reader.next(row));
    CHECK(row.text == "one");
    CHECK(row.labels == std::vector<int32_t>{7});
    CHECK(row.target == 0.5);
    REQUIRE(reader.next(row));
    CHECK(row.text == large);
    CHECK(row.labels.size() == 3);
    REQUIRE(reader.next(row));
    CHECK(row.text.empty());
    CHECK(!reader.next(row));
  }
}

TEST_CASE("a linear model learns labels that words tell, and never says one without rows") {
  NgramModel model = trained({.outputs = 4});
  const auto label = [&](const char* text) {
    return labels_of_scores(model.score(text), ProblemType::single_label);
  };
  CHECK(label("an apple") == std::vector<int32_t>{0});
  CHECK(label("HAMMERS") == std::vector<int32_t>{1});
  CHECK(label("flights to Rome") == std::vector<int32_t>{3});
  CHECK(label("#") != std::vector<int32_t>{2});
}

TEST_CASE("any number of processes trains the same linear model, bit for bit") {
  const auto one = scores_of({.outputs = 4, .workers = 1});
  CHECK(one == scores_of({.outputs = 4, .workers = 3}));
  CHECK(one == scores_of({.outputs = 4, .workers = 1}));
}

TEST_CASE("with many labels each is trained against its competitors and a sample of the rest") {
  // 40 labels of 5 rows each; 10 rows with a label of their own are a quarter of all.
  constexpr int32_t kLabels = 40;
  TextRows rows;
  for (int32_t i = 0; i < 5 * kLabels; ++i) {
    const int32_t label = i % kLabels;
    rows.add(concat("shop", label, " ", 7 * label, " item ", i), std::vector<int32_t>{label});
  }
  rows.flush();
  const auto scores_with = [&](NgramTraining training) {
    training.outputs = kLabels;
    NgramModel model = train_ngram_model(rows.descriptor(), training);
    std::vector<std::vector<double>> scores;
    for (int32_t label = 0; label < kLabels; ++label) {
      const auto own = model.score(concat("shop", label, " new"));
      scores.emplace_back(own.begin(), own.end());
    }
    return scores;
  };
  const auto scores = scores_with({.most_entries = 1000});
  CHECK(scores != scores_with({}));
  CHECK(scores == scores_with({.workers = 3, .most_entries = 1000}));
  for (int32_t label = 0; label < kLabels; ++label) {
    CHECK(labels_of_scores(scores[size_t(label)], ProblemType::single_label) ==
          std::vector<int32_t>{label});
  }
}

TEST_CASE("several labels are those with a score above 0") {
  NgramModel model = trained({.problem = ProblemType::multi_label, .outputs = 4});
  CHECK(labels_of_scores(model.score("apple"), ProblemType::multi_label) ==
        std::vector<int32_t>{0});
  CHECK(labels_of_scores(std::vector<double>{0.5, -1, 0, 2}, ProblemType::multi_label) ==
        std::vector<int32_t>{0, 3});
}

TEST_CASE("regression comes near the numbers of its texts") {
  NgramModel model = trained({.problem = ProblemType::regression});
  const double apple = model.score("apple")[0], flight = model.score("flight")[0];
  CHECK(apple < 150);
  CHECK(flight > 250);
}

TEST_CASE("the majority is the most frequent label, labels of more than half, or the mean") {
  ClassificationData data;
  data.labels = LabelMap({"a", "b", "c"});
  ClassificationSide side;
  side.labels = {2, 1, 2, 1, 0};
  CHECK(majority_of(data, side).labels == std::vector<int32_t>{1});  // of equals the first
  data.problem = ProblemType::multi_label;
  side.label_sets.push_back(std::vector<int32_t>{0, 2});
  side.label_sets.push_back(std::vector<int32_t>{2});
  CHECK(majority_of(data, side).labels == std::vector<int32_t>{2});
  data.problem = ProblemType::regression;
  data.labels = {};
  side.targets = {1, 2, 6};
  CHECK(majority_of(data, side).number == doctest::Approx(3));
}

TEST_CASE("the majority's metrics equal those of a constant model") {
  ClassificationData data;
  data.labels = LabelMap({"a", "b"});
  TextRows eval;
  for (int32_t label : {0, 1, 1, 1}) eval.add("", std::vector<int32_t>{label});
  eval.flush();
  const Baselines found = baselines_of(data, {{1}, 0}, nullptr, eval);
  CHECK(found.metrics.at("baseline_majority_accuracy") == 0.75);
  // F1 of a is 0, of b 2 * 3 / (3 + 4).
  CHECK(found.metrics.at("baseline_majority_f1_macro") == doctest::Approx(3.0 / 7));
  CHECK(found.metrics.count("baseline_majority_loss") == 0);
  CHECK(found.metrics.count("baseline_ngram_accuracy") == 0);
}

TEST_CASE("the line of baselines compares by the task's metric and warns of a better one") {
  Metrics metrics = {{"eval_mcc", 0.1}, {"eval_accuracy", 0.84}};
  CHECK(baseline_line(metrics).empty());
  metrics["baseline_majority_accuracy"] = 0.331;
  CHECK(baseline_line(metrics) == "commonest label 33.1 %");
  metrics["baseline_ngram_accuracy"] = 0.834;
  CHECK(baseline_line(metrics) == "words 83.4 %, commonest label 33.1 %");
  CHECK(baseline_warning(metrics).empty());
  metrics["baseline_ngram_accuracy"] = 0.85;
  CHECK(baseline_warning(metrics).find("85.0 % beside 84.0 %") != std::string::npos);
  CHECK(baseline_warning(metrics, "--recipe auto").find(": try --recipe auto, or a model that") !=
        std::string::npos);
  // In a mix the n-grams may contribute all of the quality; a model that improves them still
  // counts.
  metrics["baseline_unmixed_accuracy"] = 0.255;
  metrics["eval_accuracy"] = 0.85;
  CHECK(baseline_warning(metrics).find("BERT adds nothing to the n-grams, accuracy 25.5 % "
                                       "without them, 85.0 % with them alone") !=
        std::string::npos);
  metrics["eval_accuracy"] = 0.86;
  CHECK(baseline_warning(metrics).empty());
  metrics["baseline_frozen_accuracy"] = 0.255;
  CHECK(baseline_warning(metrics).empty());
  metrics["baseline_frozen_accuracy"] = 0.3;
  CHECK(baseline_warning(metrics).find("features, accuracy 30.0 % before it, 25.5 % after it") !=
        std::string::npos);
  const Metrics errors = {{"eval_mse", 2}, {"baseline_majority_mse", 9}, {"baseline_ngram_mse", 3}};
  CHECK(baseline_line(errors) == "words 1.73, mean 3.00");
  CHECK(baseline_warning(errors).empty());
  CHECK(baseline_verdict(errors).empty());
  const Metrics worse = {{"eval_mse", 9.61},
                         {"baseline_majority_mse", 9},
                         {"baseline_frozen_mse", 4},
                         {"baseline_ngram_mse", 3}};
  CHECK(baseline_verdict(worse) ==
        "Beside simpler answers: the mean is better than this model, RMSE 3.00 beside "
        "3.10; training gained nothing over the frozen encoder's features, RMSE 2.00 before it, "
        "3.10 after it; a linear model on n-grams is better than this one, RMSE 1.73 beside 3.10.");
  CHECK(baseline_warning(worse).starts_with("warning: the mean is better than this model, RMSE "));
  Metrics several = {{"eval_f1_micro", 0.45},
                     {"baseline_majority_f1_micro", 0},
                     {"baseline_ngram_f1_micro", 0.797}};
  CHECK(baseline_verdict(several) ==
        "Beside simpler answers: a linear model on n-grams is better than this one, micro "
        "F1 0.797 beside 0.450.");
  several["eval_f1_micro_tuned"] = 0.81;  // predict's thresholds
  CHECK(baseline_verdict(several).empty());
}
