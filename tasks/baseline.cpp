// Names the baselines' metrics, and formats the line that compares them.
#include "tasks/baseline.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/log.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/repeated_texts.h"
#include "tasks/scores/main_measure.h"

namespace finetune {
namespace {

// Metric: the number of columns beside the text that the linear model reads.
constexpr const char* kColumnsMetric = "baseline_ngram_columns";
constexpr std::string_view kEvalPrefix = "eval_";
constexpr const char *kUnmixedPrefix = "baseline_unmixed_", *kFrozenPrefix = "baseline_frozen_";

struct Compared {
  std::string name;  // without eval_
  bool is_share = true;
  bool larger_is_better = true;
  double majority = 0, model = 0;
  std::optional<double> ngrams, unmixed, frozen;
};

// Compares by the metric that chooses a task's best model.
std::optional<Compared> compared(const Metrics& metrics) {
  const std::string measure = main_measure(metrics);
  if (measure.empty()) return std::nullopt;
  Compared out;
  out.name = measure.substr(kEvalPrefix.size());
  out.is_share = out.larger_is_better = measure != "eval_mse";
  const auto find = [&](const char* prefix) -> std::optional<double> {
    const auto found = metrics.find(concat(prefix, out.name));
    return found == metrics.end() ? std::nullopt : std::optional(found->second);
  };
  const auto model = find("eval_"), majority = find("baseline_majority_");
  if (!model || !majority) return std::nullopt;
  const auto tuned = metrics.find(measure + "_tuned");  // by the thresholds of predict
  out.model = tuned == metrics.end() ? *model : tuned->second;
  out.majority = *majority;
  out.ngrams = find("baseline_ngram_");
  out.unmixed = find(kUnmixedPrefix);
  out.frozen = find(kFrozenPrefix);
  return out;
}

// A value in the unit that people read: "84.5 %", a micro F1 or a typical error.
std::string shown(const Compared& c, double value) {
  if (c.name == "accuracy") return format_fixed(100 * value, 1) + " %";
  return three_digits(c.is_share ? value : std::sqrt(value));
}

std::string_view measure_in_words(const Compared& c) {
  return !c.is_share ? "RMSE" : c.name == "f1_micro" ? "micro F1" : std::string_view(c.name);
}

// A simpler answer that is at least as good as the model.
struct Finding {
  std::string text;
  bool is_of_frozen = false;
};

std::vector<Finding> findings(const Metrics& metrics) {
  const std::optional<Compared> c = compared(metrics);
  if (!c) return {};
  std::vector<Finding> out;
  const auto is_better = [&](double a, double b) { return c->larger_is_better ? a > b : a < b; };
  const auto both = [&](double a, std::string_view between, double b, std::string_view after = "") {
    return concat(measure_in_words(*c), " ", shown(*c, a), between, shown(*c, b), after);
  };
  if (!is_better(c->model, c->majority)) {
    out.push_back({concat(c->is_share ? "the majority's answer to every text" : "the mean", " is ",
                          c->model == c->majority ? "as good as" : "better than", " this model, ",
                          both(c->majority, " beside ", c->model))});
  }
  const double alone = c->unmixed.value_or(c->model);
  if (c->frozen && is_better(*c->frozen, alone)) {
    out.push_back({concat("training gained nothing over the frozen encoder's features, ",
                          both(*c->frozen, " before it, ", alone, " after it")),
                   true});
  }
  if (!c->ngrams) return out;
  if (is_better(*c->ngrams, c->model)) {
    out.push_back({concat("a linear model on n-grams is better than this one, ",
                          both(*c->ngrams, " beside ", c->model))});
  } else if (c->unmixed && is_better(*c->ngrams, *c->unmixed) && !is_better(c->model, *c->ngrams)) {
    // If a mix is good, the n-grams alone may be the reason.
    out.push_back({concat("BERT adds nothing to the n-grams, ",
                          both(*c->unmixed, " without them, ", *c->ngrams, " with them alone"))});
  }
  return out;
}

// Metrics that need only labels or numbers: simple models have no losses or probabilities.
bool is_of_answers(std::string_view name) {
  static constexpr std::string_view ends[] = {"_accuracy", "_f1_macro", "_f1_micro", "_f1_weighted",
                                              "_mcc",      "_mse",      "_mae",      "_r2",
                                              "_pearson",  "_spearman"};
  return std::any_of(std::begin(ends), std::end(ends),
                     [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

Baselines Task::baselines() {
  return {};
}

void add_baselines(const Baselines& found, Metrics& metrics, std::string_view remedy) {
  metrics.insert(found.metrics.begin(), found.metrics.end());
  for (const std::string& line : found.lines) log(line);
  if (const std::string line = baseline_warning(metrics, remedy); !line.empty()) log(line);
}

Metrics unmixed_metrics(const Metrics& alone) {
  Metrics out;
  for (const auto& [name, value] : alone) {
    if (name.starts_with(kEvalPrefix) && name != "eval_loss" && name != "eval_folds" &&
        !name.ends_with("_sd") && !is_of_unseen(name)) {
      out[kUnmixedPrefix + name.substr(kEvalPrefix.size())] = value;
    }
  }
  return out;
}

Metrics frozen_metrics(const Metrics& start) {
  const bool is_mixed = start.contains(concat(kUnmixedPrefix, "accuracy"));
  const std::string_view prefix = is_mixed ? kUnmixedPrefix : kEvalPrefix;
  Metrics out;
  for (const auto& [name, value] : start) {
    if (!name.starts_with(prefix) || !is_of_answers(name) || is_of_unseen(name)) continue;
    out[kFrozenPrefix + name.substr(prefix.size())] = value;
  }
  return out;
}

std::vector<std::string> baseline_metric_names(const std::vector<std::string>& names,
                                               const BaselineKinds& kinds) {
  std::vector<std::string> out;
  std::vector<std::string> baselines{"baseline_majority_"};
  if (kinds.ngrams) baselines.emplace_back("baseline_ngram_");
  if (kinds.unmixed) baselines.emplace_back(kUnmixedPrefix);
  if (kinds.frozen) baselines.emplace_back(kFrozenPrefix);
  for (const std::string& name : names) {
    if (!name.starts_with(kEvalPrefix) || !is_of_answers(name)) continue;
    for (const std::string& baseline : baselines) {
      out.push_back(baseline + name.substr(kEvalPrefix.size()));
    }
  }
  if (!out.empty() && kinds.ngrams) {
    out.insert(out.end(), {"baseline_ngram_runtime", kColumnsMetric});
  }
  return out;
}

std::string baseline_line(const Metrics& metrics) {
  const std::optional<Compared> c = compared(metrics);
  if (!c) return "";
  const bool is_accuracy = c->name == "accuracy";
  const auto text = [&](double value) { return shown(*c, value); };
  const bool is_trained = c->unmixed && c->unmixed != c->frozen;
  return concat(is_trained ? concat("BERT alone ", text(*c->unmixed), ", ") : "",
                c->frozen ? concat("frozen features ", text(*c->frozen), ", ") : "",
                c->ngrams
                    ? concat(metrics.contains(kColumnsMetric) ? "words and columns " : "words ",
                             text(*c->ngrams), ", ")
                    : "",
                is_accuracy   ? "commonest label "
                : c->is_share ? "labels of most rows "
                              : "mean ",
                text(c->majority));
}

std::string baseline_verdict(const Metrics& metrics) {
  std::vector<std::string> texts;
  for (Finding& finding : findings(metrics)) texts.push_back(std::move(finding.text));
  if (texts.empty()) return "";
  return concat("Beside simpler answers: ", join(texts, "; "), ".");
}

std::string baseline_warning(const Metrics& metrics, std::string_view remedy) {
  const std::vector<Finding> found = findings(metrics);
  if (found.empty()) return "";
  const std::string advice = found.front().is_of_frozen
                                 ? "--recipe quick, or a smaller --lr"
                                 : concat(remedy, ", or a model that knows the data's language");
  return concat("warning: ", found.front().text, ": try ", advice);
}

}  // namespace finetune
