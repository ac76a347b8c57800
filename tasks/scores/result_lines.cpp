// Chooses the few metrics of each task that people read, and formats them.
#include "tasks/scores/result_lines.h"

#include <cmath>
#include <optional>

#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/baseline.h"
#include "tasks/repeated_texts.h"
#include "tasks/scores/main_measure.h"

namespace finetune {
namespace {

// Metrics whose names lack "_tuned" are of labels with a probability of at least one half.
const std::string kAtOneHalf = "at one half: ";

std::optional<double> found(const Metrics& metrics, const std::string& name) {
  const auto at = metrics.find(name);
  return at == metrics.end() ? std::nullopt : std::optional(at->second);
}

std::string percent(double share) {
  return format_fixed(100 * share, 1) + " %";
}

// Whether the rows are known not to be trained on. The evaluation rows of a run are given or held
// out for that. A file that is evaluated later has none of its texts trained on.
bool is_held_out(const Metrics& metrics) {
  const auto repeated = found(metrics, kRepeatedMetric);
  return metrics.contains("train_rows") || metrics.contains("best_step")
             ? !repeated || repeated != found(metrics, "eval_rows")
             : repeated == 0.0;
}

// "1,000 held-out rows"; without the number if the metrics are from an older version.
std::string held_out(const Metrics& metrics, std::string_view rows) {
  const auto count = found(metrics, "eval_rows");
  if (count == 1.0) rows.remove_suffix(1);
  const char* kind = metrics.contains("eval_folds") ? "out-of-fold "
                     : is_held_out(metrics)         ? "held-out "
                                                    : "";
  return concat(count ? with_thousands(*count) + " " : "", kind, rows);
}

struct Figure {
  const char* metric;
  const char* name;
};

// "macro F1 0.612, MCC 0.823", for the metrics that exist.
std::string figures(const Metrics& metrics, std::initializer_list<Figure> shown) {
  std::string line;
  for (const Figure& figure : shown) {
    const auto value = found(metrics, figure.metric);
    if (!value) continue;
    line += concat(line.empty() ? "" : ", ", figure.name, " ", three_digits(*value));
  }
  return line;
}

// ", calibration error 0.021" of the probabilities that predict gives. If predictions.csv and the
// report have uncalibrated ones, it adds "(calibrated)"; for a mix both are the same.
std::string calibration_error(const Metrics& metrics) {
  const auto own = found(metrics, "eval_ece"), calibrated = found(metrics, "eval_ece_calibrated");
  if (!own && !calibrated) return "";
  const bool differs = calibrated && !metrics.contains("baseline_unmixed_accuracy");
  return concat(", calibration error ", three_digits(calibrated ? *calibrated : *own),
                differs ? " (calibrated)" : "");
}

std::string automatic_line(const Metrics& metrics) {
  constexpr double kLeastRows = 100;  // of fewer rows, 95 % are all but very few
  const auto share = found(metrics, "eval_coverage_at_95");
  if (!share || found(metrics, "eval_rows").value_or(kLeastRows) < kLeastRows) return "";
  if (*share == 0) return "no part of the rows can be automatic with 95 % of them right";
  return concat(percent(*share), " of the rows can be automatic with 95 % of them right");
}

std::vector<std::string> of_labels(const Metrics& metrics, bool several_labels) {
  const double accuracy = metrics.at("eval_accuracy");
  if (several_labels && metrics.contains("eval_f1_micro_tuned")) {  // predict's thresholds
    return {concat("micro F1 ", three_digits(metrics.at("eval_f1_micro_tuned")), " on ",
                   held_out(metrics, "rows"), ", by tuned thresholds as in predict"),
            figures(metrics, {{"eval_f1_macro_tuned", "macro F1"}}) + calibration_error(metrics),
            concat(kAtOneHalf,
                   figures(metrics, {{"eval_f1_micro", "micro F1"}, {"eval_f1_macro", "macro F1"}}),
                   ", ", percent(accuracy), " with all labels right")};
  }
  if (several_labels) {
    return {concat("micro F1 ", three_digits(metrics.at("eval_f1_micro")), " on ",
                   held_out(metrics, "rows"), ", ", percent(accuracy), " with all labels right"),
            figures(metrics, {{"eval_f1_macro", "macro F1"}}) + calibration_error(metrics)};
  }
  return {concat(percent(accuracy), " of ", held_out(metrics, "rows"), " right"),
          figures(metrics, {{"eval_f1_macro", "macro F1"}, {"eval_mcc", "MCC"}}) +
              calibration_error(metrics),
          automatic_line(metrics)};
}

std::vector<std::string> of_numbers(const Metrics& metrics) {
  const bool is_one_row = found(metrics, "eval_rows") == 1.0;
  return {concat("typical error (RMSE) ", three_digits(std::sqrt(metrics.at("eval_mse"))), " on ",
                 held_out(metrics, "rows"), is_one_row ? "; R² and correlations need two" : ""),
          figures(metrics, {{"eval_mae", "MAE"}, {"eval_r2", "R²"}, {"eval_pearson", "Pearson"}})};
}

std::vector<std::string> of_answers(const Metrics& metrics) {
  return {
      concat("F1 ", three_digits(metrics.at("eval_f1")), ", exact match ",
             three_digits(metrics.at("eval_exact_match")), " on ", held_out(metrics, "questions")),
      figures(metrics, {{"eval_has_answer_f1", "F1 of questions with an answer"},
                        {"eval_no_answer_f1", "without one"}})};
}

std::vector<std::string> of_masked_words(const Metrics& metrics) {
  const auto perplexity =
      found(metrics, "eval_perplexity");  // metrics files leave out an infinite one
  std::vector<std::string> lines = {
      concat("perplexity ", perplexity ? three_digits(*perplexity) : "beyond all numbers", " on ",
             held_out(metrics, "texts"))};
  if (const auto first = found(metrics, "eval_accuracy"),
      five = found(metrics, "eval_top5_accuracy");
      first && five) {
    lines.push_back(concat(percent(*first), " of the hidden words guessed, ", percent(*five),
                           " among the first five guesses"));
  }
  return lines;
}

// "over 5 folds: accuracy ± 1.2 %, macro F1 ± 0.021"
std::string folds_line(const Metrics& metrics) {
  const auto folds = found(metrics, "eval_folds"), accuracy = found(metrics, "eval_accuracy_sd");
  if (!folds) return "";
  std::string line;
  for (const auto& [name, title] : {std::pair("eval_f1_micro_sd", "micro F1"),
                                    {"eval_f1_macro_sd", "macro F1"},
                                    {"eval_mse_sd", "squared error"}}) {
    const auto spread = found(metrics, name);
    const bool is_accuracy = std::string_view(title) == "micro F1" && metrics.contains("eval_mcc");
    if (spread && !is_accuracy) line += concat(", ", title, " ± ", three_digits(*spread));
  }
  return concat("over ", *folds, " folds: ",
                accuracy ? concat("accuracy ± ", percent(*accuracy)) + line : line.substr(2));
}

}  // namespace

std::vector<std::string> result_lines(const Metrics& metrics) {
  const auto has = [&](const char* name) { return metrics.contains(name); };
  const std::string measure = main_measure(metrics);
  std::vector<std::string> own;
  if (has("eval_top5_accuracy")) {
    own = of_masked_words(metrics);
  } else if (measure == "eval_mse") {
    own = of_numbers(metrics);
  } else if (measure == "eval_f1" && has("eval_exact_match")) {
    own = of_answers(metrics);
  } else if (has("eval_accuracy") && has("eval_f1_micro")) {
    own = of_labels(metrics, measure == "eval_f1_micro");
  }
  if (own.empty()) return {};
  std::string unseen = unseen_line(metrics);
  if (has("eval_f1_micro_tuned") && unseen.starts_with("micro F1")) unseen = kAtOneHalf + unseen;
  own.insert(own.begin() + 1, {baseline_line(metrics), unseen, folds_line(metrics)});
  std::erase(own, "");
  return own;
}

}  // namespace finetune
