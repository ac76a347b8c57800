// Evaluation rows whose text is also trained on: what they mean for a result.
//
// Bank data repeat themselves, so a model meets such rows in use, too. But on them it may merely
// remember. So a result has each measure twice: of all rows ("eval_accuracy"), and of the rows
// whose text was not trained on ("eval_accuracy_unseen"). "eval_repeated" is the number of the
// other rows. Texts are compared as data/text_sum.h says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace finetune {

inline constexpr std::string_view kUnseenSuffix = "_unseen";
inline constexpr const char* kRepeatedMetric = "eval_repeated";

// Names of `names` that have a value for unseen rows, with the suffix, and kRepeatedMetric.
std::vector<std::string> unseen_metric_names(const std::vector<std::string>& names);
// Whether a name is one of those.
bool is_of_unseen(std::string_view metric);
// The measure of all rows that a name belongs to: "eval_f1" for "eval_f1_unseen" and for itself.
std::string measure_of_all_rows(const std::string& metric);
// Adds them to `metrics`. `unseen`: metrics of the rows whose text was not trained on, empty if
// there are none.
void add_unseen(const Metrics& unseen, int64_t repeated, Metrics& metrics);

// `metrics` without them, but with `kept`: evaluations during training are as short as without
// repeated texts, and the end of a run has them all.
Metrics without_unseen(Metrics metrics, const std::string& kept);
// NaN for a metric that is missing because there are no unseen rows.
double value_or_nan(const Metrics& metrics, const std::string& name);

// For the log: "eval: 41 of 300 rows (13.7 %) have a text that is trained on, too". A warning if
// more than a tenth does. `remedy`: what the user can do; empty: nothing. Empty without such rows.
std::string describe_repeated(int64_t repeated, int64_t of, const char* rows,
                              std::string_view remedy);

// "accuracy 79.2 % on texts that are not trained on (41 left out)", from the metrics of a run or an
// evaluation; empty if no text is repeated.
std::string unseen_line(const Metrics& metrics);

}  // namespace finetune
