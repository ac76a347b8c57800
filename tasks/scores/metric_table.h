// The metrics that people read, one row each: names, and where they are shown.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace finetune {

// Flags of a metric, added up. kUsual: reports and comparisons show it beside the main metric.
// kMeasure: it measures answers, so it is also computed on rows that were not trained on. kPercent:
// it is from 0 to 100.
inline constexpr int kUsual = 1, kMeasure = 2, kPercent = 4;

struct MetricInfo {
  std::string_view name;    // "eval_accuracy"
  std::string_view title;   // in reports and model cards
  std::string_view column;  // in the log's table of evaluations; or empty
  std::string_view hub;     // the metric's type in a model card, or empty
  int kind = 0;

  constexpr bool is(int flag) const { return (kind & flag) != 0; }
};

// A task's metrics are in the order in which they are shown.
inline constexpr MetricInfo kMetricTable[] = {
    {"eval_accuracy", "Accuracy", "accuracy", "accuracy", kUsual + kMeasure},
    {"eval_f1_macro_tuned", "Macro F1 with tuned thresholds", "", "f1"},
    {"eval_f1_micro_tuned", "Micro F1 with tuned thresholds", "", "f1"},
    {"eval_f1_macro", "Macro F1", "macro F1", "f1", kUsual + kMeasure},
    {"eval_f1_micro", "Micro F1", "micro F1", "f1", kMeasure},
    {"eval_f1_weighted", "F1, weighted by rows", "", "", kMeasure},
    {"eval_mcc", "Matthews correlation", "", "matthews_correlation", kMeasure},
    {"eval_f1", "F1", "F1", "f1", kUsual + kMeasure + kPercent},
    {"eval_exact_match", "Exact match", "exact", "exact_match", kUsual + kMeasure + kPercent},
    {"eval_mse", "Mean squared error", "MSE", "mse", kUsual + kMeasure},
    {"eval_mae", "Mean absolute error", "MAE", "mae", kMeasure},
    {"eval_r2", "R²", "R²", "", kUsual + kMeasure},
    {"eval_pearson", "Pearson correlation", "", "pearsonr", kUsual + kMeasure},
    {"eval_spearman", "Spearman correlation", "", "spearmanr", kMeasure},
    {"eval_loss", "Loss of evaluation", "eval loss", "", kUsual},
    {"eval_perplexity", "Perplexity", "perplexity", "perplexity", kUsual},
    {"eval_brier", "Brier score", "", ""},
    {"eval_ece", "Calibration error", "", ""},
    {"eval_coverage_at_95", "Share of rows at 95 % accuracy", "", ""},
};

// The row of a metric, or null.
constexpr const MetricInfo* find_metric(std::string_view name) {
  const auto found = std::find_if(std::begin(kMetricTable), std::end(kMetricTable),
                                  [&](const MetricInfo& metric) { return metric.name == name; });
  return found == std::end(kMetricTable) ? nullptr : found;
}

}  // namespace finetune
