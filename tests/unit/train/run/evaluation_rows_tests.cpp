// Rows of evaluations: columns that stand under their titles, whatever the numbers are.
#include <doctest/doctest.h>

#include "train/record/progress.h"

namespace finetune {

TEST_CASE("evaluations are rows under one header, in 80 columns") {
  EvaluationRows rows("eval_accuracy", 10, 30);
  const Metrics metrics = {{"eval_loss", 0.5}, {"eval_accuracy", 0.75}, {"eval_f1_macro", 0.25}};
  const std::vector<EvaluationLine> first = rows.add({20, 1, 50, 3.2, true}, metrics, 0);
  REQUIRE(first.size() == 2);
  CHECK(first[0].whole == "  epoch   step  train loss   eval loss    accuracy    macro F1   time");
  CHECK(first[1].fitted ==
        "   1.00     20      2.0000      0.5000      0.7500      0.2500   0:03  best");
  const std::vector<EvaluationLine> second = rows.add({30, 2, 60, 65, false}, metrics, 80);
  REQUIRE(second.size() == 1);
  CHECK(second[0].fitted ==
        "   2.00     30      1.0000      0.5000      0.7500      0.2500   1:05");
  CHECK(rows.add({30, 2, 60, 70, false}, metrics, 0)[0].whole.starts_with(
      "   2.00     30           - "));
}

TEST_CASE("a narrow terminal shows fewer columns, the log all of them") {
  const Metrics metrics = {{"eval_loss", 0.5}, {"eval_accuracy", 0.75}, {"eval_f1_macro", 0.25}};
  const auto lines = [&](size_t columns) {
    return EvaluationRows("eval_accuracy", 10, 30).add({20, 1, 50, 3600, true}, metrics, columns);
  };
  CHECK(lines(60)[0].fitted == "  epoch  train loss   eval loss    accuracy   time");
  CHECK(lines(60)[1].fitted == "   1.00      2.0000      0.5000      0.7500  1:00:00  best");
  CHECK(lines(40)[0].fitted == "  epoch   eval loss    accuracy   time");
  CHECK(lines(20)[1].fitted == "   1.00      0.7500");
  CHECK(lines(60)[1].whole == lines(0)[1].fitted);
  for (size_t columns = 20; columns < 80; ++columns) {
    for (const EvaluationLine& line : lines(columns)) CHECK(line.fitted.size() <= columns);
  }
}

TEST_CASE("large and small numbers keep their columns and their digits") {
  EvaluationRows rows("eval_mse", 0, 0);
  const std::vector<EvaluationLine> lines = rows.add({10, 1, 65, 0, false},
                                                     {{"eval_loss", 7.95e13},
                                                      {"eval_mse", 79502881763212.8},
                                                      {"eval_mae", 2.5e-9},
                                                      {"eval_r2", -0.5}},
                                                     0);
  CHECK(lines[0].whole == "  epoch   step  train loss         MSE         MAE          R²   time");
  CHECK(lines[1].whole == "   1.00     10      6.5000    7.95e+13     2.5e-09     -0.5000   0:00");
  CHECK(rows.add({20, 2, 65, 0, false}, {{"eval_perplexity", 8596.4086}}, 0)[0].whole ==
        "   2.00     20      0.0000        8596   0:00");
}

}  // namespace finetune
