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
  out.model = *model;
  out.majority = *majority;
  out.ngrams = find("baseline_ngram_");
  out.unmixed = find(kUnmixedPrefix);
  out.frozen = find(kFrozenPrefix);
  return out;
}

std::string shown(const Compared& c, double value) {
  return c.is_share ? format_fixed(100 * value, 1) + " %" : format_measure(value);
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
  // Numbers are shown in their own unit.
  const bool is_accuracy = c->name == "accuracy";
  const auto text = [&](double value) {
    return is_accuracy ? shown(*c, value) : three_digits(c->is_share ? value : std::sqrt(value));
  };
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

std::string baseline_warning(const Metrics& metrics, std::string_view remedy) {
  const std::optional<Compared> c = compared(metrics);
  if (!c) return "";
  const auto is_better = [&](double a, double b) { return c->larger_is_better ? a > b : a < b; };
  const std::string advice =
      concat(": try ", remedy, ", or a model that knows the data's language");
  if (!is_better(c->model, c->majority)) {
    return concat("warning: ", c->is_share ? "the majority's answer to every text" : "the mean",
                  " is ", c->model == c->majority ? "as good as" : "better than", " this model, ",
                  c->name, " ", shown(*c, c->majority), " beside ", shown(*c, c->model), advice);
  }
  const double alone = c->unmixed.value_or(c->model);
  if (c->frozen && is_better(*c->frozen, alone)) {
    return concat("warning: training gained nothing over the frozen encoder's features, ", c->name,
                  " ", shown(*c, *c->frozen), " before it, ", shown(*c, alone),
                  " after it: try --recipe quick, or a smaller --lr");
  }
  if (!c->ngrams) return "";
  if (is_better(*c->ngrams, c->model)) {
    return concat("warning: a linear model on n-grams is better than this one, ", c->name, " ",
                  shown(*c, *c->ngrams), " beside ", shown(*c, c->model), advice);
  }
  // If a mix is good, the n-grams alone may be the reason.
  if (c->unmixed && is_better(*c->ngrams, *c->unmixed) && !is_better(c->model, *c->ngrams)) {
    return concat("warning: BERT adds nothing to the n-grams it is mixed with, ", c->name, " ",
                  shown(*c, *c->unmixed), " without them, ", shown(*c, *c->ngrams), " theirs",
                  advice);
  }
  return "";
}

}  // namespace finetune
