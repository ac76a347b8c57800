// Gates: bounds that a run's final metrics must keep.
// They are --assert "eval_f1>=88", and --baseline FILE --tolerance eval_f1=0.3 against earlier
// runs. Parsed and checked before training or evaluation.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/layout/layout.h"

namespace finetune {

enum class Comparison { at_least, greater, at_most, less, equal };  // >= > <= < ==

struct Assertion {
  std::string metric;
  Comparison comparison = Comparison::at_least;
  double bound = 0;
  std::string note;  // for the table: how the bound was computed

  bool holds(double value) const;  // false for NaN
};

// The metric that `name` probably stands for: a typo, a name without "eval_", or its beginning
// ("f1": "eval_f1_macro"). Returns nothing if none is close.
std::optional<std::string> closest_metric(std::string_view name,
                                          const std::vector<std::string>& available);

// "eval_f1>=88", spaces allowed around the operator. Error(usage) that shows the syntax.
Assertion parse_assertion(std::string_view text);

// Tolerances are "name=0.3", or "name=1%" of the baseline's value. Baselines are metrics.json files
// or their directories. A metric fails if it is worse than the baselines' mean by more than the
// tolerance. Two or more baselines are runs with different seeds. Then the bound also allows the
// difference of one more such run by chance, student_95(n - 1) * sd * sqrt(1 + 1/n), so that one of
// 40 equally good runs fails. Error(usage): bad syntax, a baseline that is unreadable, lacks the
// metric or is given twice, or only one of tolerance and baseline is given.
std::vector<Assertion> baseline_assertions(
    const std::vector<std::string>& baselines, const std::vector<std::string>& tolerances,
    const std::function<bool(const std::string& metric)>& larger_is_better);

// Error(usage) naming the first metric that is not in `available`, and the available ones.
void check_assertions(const std::vector<Assertion>& assertions,
                      const std::vector<std::string>& available);

// A run's metrics that do not depend on the task: train_loss, ..., peak_memory_mb, ...
const std::vector<std::string>& run_metric_names();
// Further metrics of a run on several processes, for axes with more than one process.
std::vector<std::string> layout_metric_names(const Layout& layout);
// An evaluation's metrics that do not depend on the task.
const std::vector<std::string>& evaluation_metric_names();
// False for losses and errors, seconds, memory and bytes; true for rates, shares and scores.
bool larger_is_better(const std::string& metric);

// The gates of --assert, then of --baseline with --tolerance. All metrics must be available.
std::vector<Assertion> gates_of(const std::vector<std::string>& assertions,
                                const std::vector<std::string>& baselines,
                                const std::vector<std::string>& tolerances,
                                const std::vector<std::string>& available);

struct GateCheck {
  std::string metric, value, bound;  // for people: "eval_f1", "87.5", ">= 88"
  bool passed = true;
};
struct AssertionReport {
  std::vector<GateCheck> checks;
  std::string table;  // metric, value, bound, PASS or FAIL; empty without assertions
  bool passed = true;

  std::string failed() const;  // "eval_accuracy 0.5 >= 0.9; ..."
};
// A gate fails if its metric is missing from `metrics`.
AssertionReport evaluate_assertions(const std::vector<Assertion>& assertions,
                                    const std::map<std::string, double>& metrics);

}  // namespace finetune
