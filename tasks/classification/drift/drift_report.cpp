// Tests each trait, corrects for the number of tests, and describes the differences.
#include "tasks/classification/drift/drift_report.h"

#include <algorithm>
#include <utility>

#include "core/text/json_value.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr const char* kLabels = "labels";

std::string p_in_words(double p) {
  return p < 1e-6 ? "p below 0.000001" : concat("p ", significant(p, 2));
}

// Whether the input is nearer to the training texts than the evaluation rows in `training` are, as
// the training rows themselves: fewer new tokens, or a larger lead of the best label.
bool is_nearer(Trait trait, const SampleSummary& training, const SampleSummary& input) {
  const double before = training.mean(trait), now = input.mean(trait);
  if (trait == Trait::new_tokens) return now <= before;
  return trait == Trait::answer && !training.labels.empty() && now >= before;
}

}  // namespace

DriftReport::DriftReport(const SampleSummary& training, const SampleSummary& input,
                         bool compares_answers)
    : training_rows_(training.rows), rows_(input.rows) {
  const SampleSizes sizes{double(training.distinct), double(input.distinct)};
  for (size_t i = 0; i < kTraits; ++i) {
    const auto trait = Trait(i);
    if ((trait == Trait::answer || trait == Trait::new_tokens) && !compares_answers) continue;
    TwoSampleTest test = kolmogorov_smirnov(training.values[i], input.values[i], sizes);
    if (is_nearer(trait, training, input)) test.p = 1;
    tests_.push_back({kTraitNames[i], test, training.mean(trait), input.mean(trait)});
  }
  if (compares_answers && !training.labels.empty()) {
    const CountsTest found = same_shares(training.labels, input.labels, sizes);
    label_ = found.largest;
    tests_.push_back({kLabels, found.test, label_ < 0 ? 0 : training.share(label_),
                      label_ < 0 ? 0 : input.share(label_)});
  }
  std::stable_sort(tests_.begin(), tests_.end(),
                   [](const auto& a, const auto& b) { return a.test.p < b.test.p; });
  p_ = std::min(1.0, tests_.front().test.p * double(tests_.size()));
}

std::string DriftReport::words_for(const Difference& difference, ProblemType problem,
                                   const std::vector<std::string>& labels,
                                   std::string_view mark) const {
  const auto pair = [&](std::string_view before, std::string_view after, double scale,
                        std::string_view unit) {
    return concat(before, significant(difference.input * scale, 3), unit, after, " (", mark,
                  significant(difference.training * scale, 3), unit, ")");
  };
  const std::string& name = difference.name;
  if (name == "words") return pair("", " words a text", 1, "");
  if (name == "characters") return pair("", " characters a text", 1, "");
  if (name == "new_tokens") {
    return pair("", " of their word pieces and pairs are new", 100, " %");
  }
  if (name == kLabels) {
    if (label_ < 0) return "the shares of rare labels";
    return pair(concat("label ", in_quotes(labels[size_t(label_)]), " "), "", 100, " %");
  }
  switch (problem) {
    case ProblemType::single_label:
      return pair("the log odds of the label over the second one are ", "", 1, "");
    case ProblemType::multi_label:
      return pair("the log odds of a label, yes or no, are ", " from 0", 1, "");
    case ProblemType::regression:
      return pair("the mean number is ", "", 1, "");
  }
  return "";
}

std::string DriftReport::line(ProblemType problem, const std::vector<std::string>& labels) const {
  if (!differs()) return "";
  std::vector<std::string> parts;
  for (const Difference& difference : tests_) {
    if (difference.test.p * double(tests_.size()) >= kDriftLevel) break;
    parts.push_back(words_for(difference, problem, labels, parts.empty() ? "training: " : ""));
  }
  return concat("the rows differ from those of training (", p_in_words(p_),
                "): ", join(parts, ", "));
}

std::string DriftReport::json(const std::vector<std::string>& labels) const {
  JsonObject tests;
  for (const Difference& difference : tests_) {
    JsonObject test{{"p", difference.test.p}, {"statistic", difference.test.statistic}};
    if (difference.name == kLabels && label_ >= 0) test.add("label", labels[size_t(label_)]);
    test.add("training", difference.training);
    test.add("input", difference.input);
    tests.add(difference.name, test);
  }
  return JsonObject{{"differs", differs()}, {"p", p_},
                    {"level", kDriftLevel}, {"training_rows", training_rows_},
                    {"rows", rows_},        {"tests", tests}}
      .text();
}

}  // namespace finetune
