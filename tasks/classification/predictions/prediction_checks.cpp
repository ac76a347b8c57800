// Refuses outputs that a classification model cannot give.
#include "tasks/classification/predictions/prediction_checks.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/path_advice.h"
#include "core/text/text.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/predictions/prediction_format.h"
#include "tasks/labels/explanation.h"
#include "tasks/registry.h"

namespace finetune {
namespace {

void check_request(const PredictionRequest& request, const TaskOptions& options) {
  if (!request.n_best.empty()) {
    throw usage_error("--nbest is for question answering; this is a classification model");
  }
  require_form_of(TaskKind::classification, std::filesystem::path(request.input),
                  options.text_columns);
  if (request.json_lines) {
    require_output_suffix("--output", request.output, {".jsonl", ".ndjson", ".json"},
                          "labels are written as JSON Lines; name it .jsonl");
  } else {
    require_output_suffix("--output", request.output, {".csv"},
                          "labels are written as CSV or JSON Lines; name it .csv or .jsonl");
  }
}

void check_top_k(const PredictionRequest& request, ProblemType problem, int64_t labels) {
  const int64_t top_k = request.top_k.value_or(1);
  if (problem == ProblemType::regression && (top_k != 1 || request.all_probabilities)) {
    throw usage_error("--top-k and --all-probabilities do not go with a regression model");
  }
  if (problem == ProblemType::multi_label && top_k != 1) {
    throw usage_error("--top-k does not go with a multi-label model (--all-probabilities does)");
  }
  if (top_k < 1 || top_k > labels) {
    throw usage_error("--top-k ", top_k, " is not in 1 to ", labels, ", the model's labels");
  }
}

}  // namespace

void check_unsure(std::string_view option, ProblemType problem,
                  const std::vector<std::string>& labels) {
  if (problem != ProblemType::single_label) {
    throw usage_error(option, " needs a model that gives one label a row; this model gives ",
                      problem == ProblemType::regression ? "numbers" : "several");
  }
  if (std::find(labels.begin(), labels.end(), kUnsure) == labels.end()) return;
  throw usage_error(option, ": the model has a label ", in_quotes(kUnsure),
                    " of its own; leave the option out and look at the probabilities");
}

void check_prediction(const PredictionRequest& request, const TaskOptions& options,
                      const EncoderConfig& config) {
  check_request(request, options);
  const std::vector<std::string>& labels = trained_labels(config);
  const ProblemType problem = problem_type(options);
  if (options.min_probability) {
    check_unsure(concat("--min-probability ", *options.min_probability), problem, labels);
  }
  if (request.explain) check_explanation(problem, labels.size());
  if (request.explain && options.long_texts.in_windows) {
    throw usage_error("--explain does not go with --long-text windows; add --long-text cut");
  }
  check_top_k(request, problem, int64_t(labels.size()));
}

}  // namespace finetune
