// Gates: bounds that a run's final metrics must keep.
// They are --assert "eval_f1>=88", and --baseline FILE --tolerance eval_f1=0.3 against an earlier
// metrics.json. Parsed and checked before training.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
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

// "eval_f1>=88", spaces allowed around the operator. Error(usage) that shows the syntax.
Assertion parse_assertion(std::string_view text);

// Tolerances "name=0.3" (absolute) against the metrics in `baseline`: worse by more than the
// tolerance fails. Error(usage): bad syntax, an unreadable baseline or one without that metric, a
// tolerance without a baseline or a baseline without a tolerance.
std::vector<Assertion> baseline_assertions(
    const std::filesystem::path& baseline, const std::vector<std::string>& tolerances,
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

struct AssertionReport {
  std::string table;  // metric, value, bound, PASS or FAIL; empty without assertions
  bool passed = true;
};
// A metric that is missing from `metrics` fails.
AssertionReport evaluate_assertions(const std::vector<Assertion>& assertions,
                                    const std::map<std::string, double>& metrics);

}  // namespace finetune
