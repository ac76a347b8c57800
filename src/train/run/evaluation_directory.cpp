// Which files make a directory an earlier evaluation's.
#include "train/run/evaluation_directory.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/files/files.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr std::array<std::string_view, 9> kEvaluationFiles{
    "predictions.csv", "predictions.json", "nbest_predictions.json",
    "null_odds.json",  "confusion.csv",    "per_class.csv",
    "slices.csv",      "metrics.json",     kEvaluationFacts};

}  // namespace

bool is_evaluation_file(std::string_view name) {
  return std::find(kEvaluationFiles.begin(), kEvaluationFiles.end(), name) !=
         kEvaluationFiles.end();
}

bool is_evaluation(const fs::path& directory) {
  const fs::path file = directory / kEvaluation.last_file;
  if (kind_of(file, ExitCode::model) != FileKind::file) return false;
  const std::string text = read_text_file(file, ExitCode::model);
  try {
    const auto metrics = parse_metrics(text, file, ExitCode::model);
    return std::any_of(metrics.begin(), metrics.end(),
                       [](const auto& metric) { return metric.first.starts_with("eval_"); });
  } catch (const Error&) {  // something else than metrics
    return false;
  }
}

}  // namespace finetune
