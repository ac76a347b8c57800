// The result in words, for each kind of task, from metrics as they are written.
#include <doctest/doctest.h>

#include "tasks/scores/result_lines.h"

namespace finetune {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE(
    "the result of labels says how much is right, what words alone reach, what is automatic") {
  Metrics metrics = {{"eval_accuracy", 0.8449}, {"eval_f1_micro", 0.8449},
                     {"eval_f1_macro", 0.6118}, {"eval_mcc", 0.8231},
                     {"eval_ece", 0.05},        {"eval_ece_calibrated", 0.0214},
                     {"eval_rows", 12345},      {"eval_coverage_at_95", 0.826},
                     {"train_rows", 9}};
  CHECK(result_lines(metrics) ==
        Lines{"84.5 % of 12,345 held-out rows right",
              "macro F1 0.612, MCC 0.823, calibration error 0.021 (calibrated)",
              "82.6 % of the rows can be automatic with 95 % of them right"});
  metrics["baseline_majority_accuracy"] = 0.248;
  metrics["baseline_ngram_accuracy"] = 0.839;
  metrics["baseline_unmixed_accuracy"] = 0.831;
  metrics["eval_repeated"] = 41;
  metrics["eval_accuracy_unseen"] = 0.792;
  metrics["eval_coverage_at_95"] = 0;
  const Lines lines = result_lines(metrics);
  REQUIRE(lines.size() == 5);
  CHECK(lines[1] == "BERT alone 83.1 %, words 83.9 %, commonest label 24.8 %");
  CHECK(lines[2] == "accuracy 79.2 % on texts that are not trained on (41 left out)");
  CHECK(lines[3] == "macro F1 0.612, MCC 0.823, calibration error 0.021");  // a mix has one kind
  metrics["baseline_frozen_accuracy"] = 0.824;
  CHECK(result_lines(metrics)[1] ==
        "BERT alone 83.1 %, frozen features 82.4 %, words 83.9 %, commonest label 24.8 %");
  CHECK(lines[4] == "no part of the rows can be automatic with 95 % of them right");
  for (const std::string& line : lines) CHECK(line.size() <= 80);
}

TEST_CASE("the result of sets of labels, numbers, answers and masked words") {
  CHECK(result_lines({{"eval_accuracy", 0.612},
                      {"eval_f1_micro", 0.7119},
                      {"eval_f1_macro", 0.5},
                      {"eval_ece", 0.1},
                      {"eval_rows", 999},
                      {"best_step", 7}}) ==
        Lines{"micro F1 0.712 on 999 held-out rows, 61.2 % with all labels right",
              "macro F1 0.500, calibration error 0.100"});
  CHECK(result_lines({{"eval_accuracy", 0.612},
                      {"eval_f1_micro", 0.7119},
                      {"eval_f1_macro", 0.5},
                      {"eval_f1_micro_tuned", 0.7},
                      {"eval_f1_macro_tuned", 0.6},
                      {"eval_f1_micro_unseen", 0.65},
                      {"eval_repeated", 9},
                      {"eval_rows", 999},
                      {"best_step", 7}}) ==
        Lines{"micro F1 0.700 on 999 held-out rows, by tuned thresholds as in predict",
              "at one half: micro F1 0.650 on texts that are not trained on (9 left out)",
              "macro F1 0.600",
              "at one half: micro F1 0.712, macro F1 0.500, 61.2 % with all labels right"});
  CHECK(result_lines({{"eval_mse", 67643.8},
                      {"eval_mae", 12.345},
                      {"eval_pearson", 0.9},
                      {"eval_rows", 1000},
                      {"best_step", 7},
                      {"baseline_majority_mse", 640000}}) ==
        Lines{"typical error (RMSE) 260 on 1,000 held-out rows", "mean 800",
              "MAE 12.3, Pearson 0.900"});
  CHECK(result_lines({{"eval_f1", 78.234},
                      {"eval_exact_match", 70.06},
                      {"eval_rows", 10570},
                      {"best_step", 7}}) ==
        Lines{"F1 78.2, exact match 70.1 on 10,570 held-out questions"});
  CHECK(result_lines({{"eval_perplexity", 12.34},
                      {"eval_accuracy", 0.471},
                      {"eval_top5_accuracy", 0.68},
                      {"eval_rows", 100},
                      {"best_step", 7}}) ==
        Lines{"perplexity 12.3 on 100 held-out texts",
              "47.1 % of the hidden words guessed, 68.0 % among the first five guesses"});
}

TEST_CASE("simpler answers and unseen texts are measured as the result is") {
  const Metrics sets = {
      {"eval_accuracy", 0.1}, {"eval_f1_micro", 0.189},          {"eval_f1_macro", 0.1},
      {"eval_rows", 60},      {"baseline_majority_f1_micro", 0}, {"baseline_ngram_f1_micro", 0.992},
      {"eval_repeated", 3},   {"eval_f1_micro_unseen", 0.12},    {"eval_accuracy_unseen", 0}};
  CHECK(result_lines(sets)[1] == "words 0.992, labels of most rows 0.000");
  CHECK(result_lines(sets)[2] == "micro F1 0.120 on texts that are not trained on (3 left out)");
  const Metrics numbers = {{"eval_mse", 9},
                           {"eval_mae", 2},
                           {"eval_rows", 10},
                           {"eval_repeated", 4},
                           {"eval_mse_unseen", 16}};
  CHECK(result_lines(numbers)[1] == "RMSE 4.00 on texts that are not trained on (4 left out)");
  CHECK(result_lines({{"eval_mse", 4e30}, {"eval_rows", 1}, {"best_step", 7}})[0] ==
        "typical error (RMSE) 2e+15 on 1 held-out row; R² and correlations need two");
  // A file has no infinite perplexity.
  CHECK(result_lines({{"eval_accuracy", 0.5},
                      {"eval_top5_accuracy", 0.7},
                      {"eval_rows", 9},
                      {"best_step", 7}})[0] == "perplexity beyond all numbers on 9 held-out texts");
}

TEST_CASE("rows are called held-out only where that is known") {
  Metrics metrics = {{"eval_accuracy", 1}, {"eval_f1_micro", 1}, {"eval_rows", 99}};
  metrics["eval_mcc"] = metrics["eval_coverage_at_95"] = 1;
  // Of an evaluated file nothing is known; and 95 % of a few rows are all of them.
  CHECK(result_lines(metrics) == Lines{"100.0 % of 99 rows right", "MCC 1.00"});
  metrics["eval_repeated"] = 1;
  CHECK(result_lines(metrics)[0] == "100.0 % of 99 rows right");
  metrics["eval_repeated"] = 0;
  CHECK(result_lines(metrics)[0] == "100.0 % of 99 held-out rows right");
  metrics["train_rows"] = 50;
  metrics["eval_repeated"] = 5;
  CHECK(result_lines(metrics)[0] == "100.0 % of 99 held-out rows right");
  metrics["eval_repeated"] = 99;
  CHECK(result_lines(metrics)[0] == "100.0 % of 99 rows right");
}

TEST_CASE("a run without evaluation has no result") {
  CHECK(result_lines({{"train_loss", 1.5}}).empty());
}

}  // namespace
}  // namespace finetune
