// Classification metrics against scikit-learn 1.9.1 and SciPy 1.17.1.
// Expected values are theirs on the vectors written here (accuracy_score, f1_score and
// precision_recall_fscore_support with zero_division=0, matthews_corrcoef, confusion_matrix,
// mean_squared_error, mean_absolute_error, r2_score, pearsonr, spearmanr); those of the edge cases
// follow from the definitions, as said there.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "classification_fixture.h"
#include "tasks/classification/evaluation/class_counts.h"
#include "tasks/scores/label_scores.h"

using namespace finetune;
using namespace finetune::test;

namespace {

constexpr double kTolerance = 1e-14;

bool nearly(double a, double b) {
  return std::abs(a - b) <= kTolerance;
}

void check_class(const ClassScores& c, double precision, double recall, double f1,
                 int64_t support) {
  CHECK(nearly(c.precision, precision));
  CHECK(nearly(c.recall, recall));
  CHECK(nearly(c.f1, f1));
  CHECK(c.support == support);
}

LabelSets sets(std::initializer_list<std::vector<int32_t>> rows) {
  LabelSets out;
  for (const auto& row : rows) out.push_back(row);
  return out;
}

}  // namespace

TEST_CASE("single-label scores equal scikit-learn's") {
  // Class 4 is predicted but never true: it counts in macro. Class 5 is neither, and does not
  // count.
  std::vector<int32_t> truth{0, 1, 2, 2, 1, 0, 3, 3, 1, 2, 0, 1, 2, 3, 3, 2, 1, 0, 0, 2};
  std::vector<int32_t> predicted{0, 1, 2, 1, 1, 0, 3, 2, 1, 2, 1, 1, 0, 3, 3, 2, 2, 0, 4, 2};
  SingleLabelScores s = single_label_scores(truth, predicted, 6);
  CHECK(nearly(s.accuracy, 0.7));
  CHECK(nearly(s.f1.micro, 0.7));
  CHECK(nearly(s.f1.macro, 0.5835497835497836));
  CHECK(nearly(s.f1.weighted, 0.7199134199134198));
  CHECK(nearly(s.mcc, 0.6066801485975475));
  check_class(s.classes[0], 0.75, 0.6, 2.0 / 3, 5);
  check_class(s.classes[1], 2.0 / 3, 0.8, 0.7272727272727273, 5);
  check_class(s.classes[2], 2.0 / 3, 2.0 / 3, 2.0 / 3, 6);
  check_class(s.classes[3], 1, 0.75, 0.8571428571428571, 4);
  check_class(s.classes[4], 0, 0, 0, 0);
  check_class(s.classes[5], 0, 0, 0, 0);
  // The same sample by sample, and the matrix.
  TemporaryDirectory folder;
  ClassificationData data;
  data.labels = LabelMap({"a", "b", "c", "d", "e", "f"});
  ClassCounts tally(data, {}, 0);
  for (size_t i = 0; i < truth.size(); ++i) tally.add_label(truth[i], predicted[i], 0.5);
  CHECK(tally.metrics()["eval_f1_macro"] == s.f1.macro);
  CHECK(tally.metrics()["eval_mcc"] == s.mcc);
  CHECK(tally.metrics()["eval_loss"] == 0.5);
  tally.write_files(folder.path());
  CHECK(folder.read("confusion.csv") ==
        "true_label,a,b,c,d,e,f\na,3,1,0,0,1,0\nb,0,4,1,0,0,0\nc,1,1,4,0,0,0\nd,0,0,1,3,0,0\n"
        "e,0,0,0,0,0,0\nf,0,0,0,0,0,0\n");
}

TEST_CASE("of many labels confusion.csv has the pairs that occur") {
  std::vector<std::string> names;
  for (int i = 0; i < 1001; ++i) names.push_back(concat("label ", 1000 + i));
  ClassificationData data;
  data.labels = LabelMap(names);
  ClassCounts tally(data, {}, 0);
  for (const auto& [truth, predicted] : {std::pair{7, 7}, {1000, 3}, {7, 7}, {0, 1000}}) {
    tally.add_label(truth, predicted, 0.5);
  }
  TemporaryDirectory folder;
  tally.write_files(folder.path());
  CHECK(folder.read("confusion.csv") ==
        "true_label,label,rows\nlabel 1000,label 2000,1\nlabel 1007,label 1007,2\n"
        "label 2000,label 1003,1\n");
}

TEST_CASE("labels unknown to the model are classes that are never predicted") {
  // The model knows 0..5; 6 and 7 are two unknown names.
  std::vector<int32_t> truth{6, 1, 2, 2, 1, 0, 7, 0};
  std::vector<int32_t> predicted{0, 1, 2, 1, 1, 0, 2, 0};
  SingleLabelScores s = single_label_scores(truth, predicted, 8);
  CHECK(nearly(s.accuracy, 0.625));
  CHECK(nearly(s.f1.micro, 0.625));
  CHECK(nearly(s.f1.macro, 0.42));
  CHECK(nearly(s.f1.weighted, 0.525));
  CHECK(nearly(s.mcc, 0.5237229365663818));
  check_class(s.classes[0], 2.0 / 3, 1, 0.8, 2);
  check_class(s.classes[6], 0, 0, 0, 1);
}

TEST_CASE("single-label edge cases") {
  std::vector<int32_t> none;
  SingleLabelScores empty = single_label_scores(none, none, 3);
  CHECK(empty.accuracy == 0);
  CHECK(empty.f1.macro == 0);
  CHECK(empty.mcc == 0);

  // One class, all right: F1 is 1; the correlation is 0/0, which scikit-learn calls 0.
  std::vector<int32_t> ones{1, 1, 1};
  SingleLabelScores one = single_label_scores(ones, ones, 2);
  CHECK(one.accuracy == 1);
  CHECK(one.f1.micro == 1);
  CHECK(one.f1.macro == 1);
  CHECK(one.f1.weighted == 1);
  CHECK(one.mcc == 0);

  // All wrong, each class predicted as the other: (0 * 4 - 2 * 2 * 2) / (16 - 8) = -1.
  SingleLabelScores wrong =
      single_label_scores(std::vector<int32_t>{0, 0, 1, 1}, std::vector<int32_t>{1, 1, 0, 0}, 2);
  CHECK(wrong.accuracy == 0);
  CHECK(wrong.f1.micro == 0);
  CHECK(wrong.f1.macro == 0);
  CHECK(wrong.mcc == -1);
}

TEST_CASE("multi-label scores equal scikit-learn's") {
  // Indicator rows 1010 0100 1100 0000 0010 1000 0000 against 1010 0110 1000 0000 0100 1000 1000.
  // Class 3 never occurs and counts in macro with F1 0.
  LabelSets truth = sets({{0, 2}, {1}, {0, 1}, {}, {2}, {0}, {}});
  LabelSets predicted = sets({{0, 2}, {1, 2}, {0}, {}, {1}, {0}, {0}});
  MultiLabelScores s = multi_label_scores(truth, predicted, 4);
  CHECK(nearly(s.accuracy, 0.42857142857142855));
  CHECK(nearly(s.f1.micro, 2.0 / 3));
  CHECK(nearly(s.f1.macro, 0.4642857142857143));
  CHECK(nearly(s.f1.weighted, 0.6530612244897959));
  check_class(s.classes[0], 0.75, 1, 0.8571428571428571, 3);
  check_class(s.classes[1], 0.5, 0.5, 0.5, 2);
  check_class(s.classes[2], 0.5, 0.5, 0.5, 2);
  check_class(s.classes[3], 0, 0, 0, 0);

  MultiLabelScores nothing = multi_label_scores(sets({{}, {}}), sets({{}, {}}), 2);
  CHECK(nothing.accuracy == 1);  // both empty sets are right
  CHECK(nothing.f1.micro == 0);
  CHECK(multi_label_scores(sets({}), sets({}), 2).accuracy == 0);
}

TEST_CASE("regression scores equal scikit-learn's and SciPy's") {
  std::vector<double> truth{1.0, 2.5, 2.5, -3.0, 4.0, 0.5, 2.5, 7.25};
  std::vector<double> predicted{0.9, 2.0, 3.1, -1.0, 3.1, 3.1, 0.0, 5.5};
  RegressionScores s = regression_scores(truth, predicted);
  CHECK(nearly(s.mse, 2.6878125));
  CHECK(nearly(s.mae, 1.36875));
  CHECK(nearly(s.r2, 0.6438048401708295));
  CHECK(nearly(s.pearson, 0.8095003855861546));
  CHECK(nearly(s.spearman, 0.65));
}

TEST_CASE("regression edge cases") {
  CHECK(regression_scores({}, {}).mse == 0);
  // Constant predictions: no correlation can be measured; rounding errors of the mean of 0.1 must
  // not count as variance.
  std::vector<double> truth{1, 2, 3}, constant(3, 0.1);
  RegressionScores s = regression_scores(truth, constant);
  CHECK(nearly(s.mse, (0.81 + 3.61 + 8.41) / 3));
  CHECK(s.pearson == 0);
  CHECK(regression_scores(constant, constant).r2 == 1);
  CHECK(regression_scores(constant, truth).r2 == 0);
  CHECK(regression_scores(truth, std::vector<double>{2, 2, 2}).r2 == 0);
  CHECK(s.spearman == 0);
  CHECK(regression_scores(constant, truth).spearman == 0);
  // A monotone curve: ranks agree.
  CHECK(nearly(regression_scores(truth, std::vector<double>{1, 10, 1000}).spearman, 1));
  CHECK(nearly(regression_scores(truth, std::vector<double>{3, 2, 1}).pearson, -1));
  double nan = std::numeric_limits<double>::quiet_NaN();
  RegressionScores broken = regression_scores(truth, std::vector<double>{1, nan, 2});
  CHECK(std::isnan(broken.mse));
  CHECK(broken.spearman == 0);
}

TEST_CASE("host losses stay finite for large logits") {
  std::vector<float> logits{1000, -1000, 0};
  const std::vector<float> huge(24, 1e30f);  // equal ones
  CHECK(cross_entropy_loss(huge, 3, {}, 0) == doctest::Approx(std::log(24.0)));
  CHECK(cross_entropy_loss(logits, 1, {}, 0) == 2000);
  CHECK(binary_cross_entropy_loss(logits, std::vector<int32_t>{1}) ==
        doctest::Approx((1000 + 1000 + std::log(2.0)) / 3));
}
