// Metrics for evaluation rows whose text is also trained on.
//
// Bank data repeat themselves, so a model also meets such rows in use. But on these rows it may
// only remember. So a result has each measure twice: for all rows ("eval_accuracy"), and for the
// rows whose text was not trained on ("eval_accuracy_unseen"). "eval_repeated" is the number of the
// other rows. data/text_sum.h says how texts are compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace finetune {

inline constexpr std::string_view kUnseenSuffix = "_unseen";
inline constexpr const char* kRepeatedMetric = "eval_repeated";

// Of `names`, those that have a value for unseen rows, with the suffix; then kRepeatedMetric.
std::vector<std::string> unseen_metric_names(const std::vector<std::string>& names);
// Whether a name is one of these.
bool is_of_unseen(std::string_view metric);
// The measure of all rows for a name: "eval_f1" for "eval_f1_unseen" and for itself.
std::string measure_of_all_rows(const std::string& metric);
// Adds these metrics to `metrics`. `unseen`: the metrics of the rows whose text was not trained on;
// empty if there are none.
void add_unseen(const Metrics& unseen, int64_t repeated, Metrics& metrics);

// Returns `metrics` without them, except `kept`. Evaluations during training show as few metrics as
// without repeated texts; the end of a run shows all.
Metrics without_unseen(Metrics metrics, const std::string& kept);
// The metric's value, or NaN if it is missing because there are no unseen rows.
double value_or_nan(const Metrics& metrics, const std::string& name);

// For the log: "eval: 41 of 300 rows (13.7 %) have a text that is trained on, too"; a warning above
// a tenth. `remedy`: what the user can do, or empty. Returns "" if there are no such rows.
std::string describe_repeated(int64_t repeated, int64_t of, const char* rows,
                              std::string_view remedy);

// "accuracy 79.2 % on texts that are not trained on (41 left out)", from the metrics of a run or an
// evaluation. Returns "" if no text is repeated.
std::string unseen_line(const Metrics& metrics);

}  // namespace finetune
