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
  std::string note;  // for the table: where the bound comes from

  bool holds(double value) const;  // false for NaN
};

// The metric that `name` is probably meant to be: a typo, a name without "eval_", or the beginning
// of one ("f1": "eval_f1_macro"). Nothing where none is near.
std::optional<std::string> closest_metric(std::string_view name,
                                          const std::vector<std::string>& available);

// "eval_f1>=88", spaces allowed around the operator. Error(usage) that shows the syntax.
Assertion parse_assertion(std::string_view text);

// Tolerances "name=0.3", or of the baseline's value "name=1%", against metrics.json files or the
// directories that hold them: worse than their mean by more than the tolerance fails. Of several
// baselines (two at least), runs with other seeds, the tolerance is on top of what one more such
// run may differ from their mean by chance: student_95(n - 1) * sd * sqrt(1 + 1/n), so that of 40
// runs as good as they are one fails. Error(usage): bad syntax, an unreadable baseline or one
// without that metric, a baseline given twice, a tolerance without a baseline or a baseline without
// a tolerance.
std::vector<Assertion> baseline_assertions(
    const std::vector<std::string>& baselines, const std::vector<std::string>& tolerances,
    const std::function<bool(const std::string& metric)>& larger_is_better);

// Error(usage) naming the first metric that is not in `available`, and those that are.
void check_assertions(const std::vector<Assertion>& assertions,
                      const std::vector<std::string>& available);

// The metrics of a run besides the task's: train_loss, ..., peak_memory_mb, startup_seconds.
const std::vector<std::string>& run_metric_names();
// Those of a run on several processes, beside them: of the axes along which there are several.
std::vector<std::string> layout_metric_names(const Layout& layout);
// Those of an evaluation, besides the task's.
const std::vector<std::string>& evaluation_metric_names();
// False for losses and errors, seconds, memory and bytes; true for rates, shares and scores.
bool larger_is_better(const std::string& metric);

// --assert, then --baseline with --tolerance, checked against the metrics there will be.
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
// A metric that is missing from `metrics` fails.
AssertionReport evaluate_assertions(const std::vector<Assertion>& assertions,
                                    const std::map<std::string, double>& metrics);

}  // namespace finetune
