// Parses assertions and baselines, and evaluates them on final metrics.
#include "train/run/gates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "core/numeric/estimate.h"
#include "core/text/printable.h"
#include "core/text/shown_numbers.h"
#include "tasks/repeated_texts.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr size_t kMostMetricNames = 40, kLongestMetricName = 60;  // shown from a file

// Longer operators first, so that ">=" is not read as ">".
constexpr std::array<std::pair<std::string_view, Comparison>, 5> kOperators{{
    {">=", Comparison::at_least},
    {"<=", Comparison::at_most},
    {"==", Comparison::equal},
    {">", Comparison::greater},
    {"<", Comparison::less},
}};

std::string_view symbol(Comparison comparison) {
  for (const auto& [text, value] : kOperators) {
    if (value == comparison) return text;
  }
  return "?";
}

bool is_metric_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '@';
  });
}

// A value for people, with enough digits to compare it with the bound.
std::string shown(double value) {
  if (!std::isfinite(value)) return "none";
  double magnitude = std::abs(value);
  if (value == std::floor(value) && magnitude < 1e15) return format_fixed(value, 0);
  if (magnitude >= 1e-3 && magnitude < 1e9) {
    std::string text = format_fixed(value, 6);
    text.erase(text.find_last_not_of('0') + 1);
    return text;
  }
  return significant(value, 6);
}

struct Baseline {
  fs::path file;
  std::map<std::string, double> metrics;
};

// The directory of a run or an evaluation stands for its metrics.json.
std::vector<Baseline> read_baselines(const std::vector<std::string>& paths) {
  std::vector<Baseline> baselines;
  for (const std::string& path : paths) {
    const bool is_directory = directory_exists(path, ExitCode::usage);
    Baseline one{is_directory ? fs::path(path) / "metrics.json" : fs::path(path), {}};
    if (is_directory && !path_exists(one.file, ExitCode::usage)) {
      throw usage_error("--baseline ", path,
                        ": has no metrics.json; give the directory of a run that has ended, of a "
                        "sweep those of its runs");
    }
    for (const Baseline& other : baselines) {
      std::error_code error;
      if (other.file == one.file || fs::equivalent(other.file, one.file, error)) {
        throw usage_error("--baseline ", path, ": is given twice");
      }
    }
    one.metrics = read_metrics(one.file);
    baselines.push_back(std::move(one));
  }
  return baselines;
}

struct Tolerance {
  std::string metric;
  double value = 0;
  bool is_relative = false;  // in percent
};

Tolerance parse_tolerance(const std::string& text) {
  const size_t at = text.find('=');
  Tolerance out{std::string(trim(std::string_view(text).substr(0, at))), 0, false};
  std::optional<double> value;
  if (at != std::string::npos) {
    std::string_view number = trim(std::string_view(text).substr(at + 1));
    out.is_relative = number.ends_with('%');
    if (out.is_relative) number = trim(number.substr(0, number.size() - 1));
    value = parse_double(number);
  }
  if (!is_metric_name(out.metric) || !value || !(*value >= 0) || !std::isfinite(*value)) {
    throw usage_error("--tolerance ", in_quotes(text),
                      ": write METRIC=NUMBER or METRIC=NUMBER% (not negative), as in --tolerance "
                      "eval_f1=0.3");
  }
  out.value = *value;
  return out;
}

double value_in(const Baseline& baseline, const Tolerance& tolerance, const std::string& text) {
  const auto found = baseline.metrics.find(tolerance.metric);
  if (found != baseline.metrics.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : baseline.metrics) {
    names.push_back(printable(entry.first, kLongestMetricName));
  }
  throw usage_error("--tolerance ", in_quotes(text), ": ", baseline.file.string(), " has no ",
                    tolerance.metric, "; it has ", join_some(names, kMostMetricNames));
}

// How far one more run may be from the mean of the others by chance (95 %, two-sided).
double noise_of_one_more(const Estimate& estimate) {
  if (estimate.runs < 2) return 0;
  const double n = double(estimate.runs);
  return student_95(n - 1) * estimate.sd * std::sqrt(1 + 1 / n);
}

}  // namespace

bool Assertion::holds(double value) const {
  if (!std::isfinite(value)) return false;  // shown as "none"; it must not pass
  switch (comparison) {
    case Comparison::at_least:
      return value >= bound;
    case Comparison::greater:
      return value > bound;
    case Comparison::at_most:
      return value <= bound;
    case Comparison::less:
      return value < bound;
    case Comparison::equal:
      return value == bound;
  }
  return false;
}

std::optional<std::string> closest_metric(std::string_view name,
                                          const std::vector<std::string>& available) {
  const std::string full = name.starts_with("eval_") ? std::string(name) : concat("eval_", name);
  std::optional<std::string> shortest;
  for (const std::string& metric : available) {
    if (name.empty() || (!metric.starts_with(name) && !metric.starts_with(full))) continue;
    if (!shortest || metric.size() < shortest->size()) shortest = metric;
  }
  if (shortest) return shortest;
  if (auto near = closest_match(name, available)) return near;
  return closest_match(full, available);
}

Assertion parse_assertion(std::string_view text) {
  size_t at = text.find_first_of("><=");
  for (const auto& [symbol, comparison] : kOperators) {
    if (at == std::string_view::npos || text.substr(at, symbol.size()) != symbol) continue;
    std::string_view name = trim(text.substr(0, at));
    auto bound = parse_double(trim(text.substr(at + symbol.size())));
    if (!is_metric_name(name) || !bound || !std::isfinite(*bound)) break;
    return {std::string(name), comparison, *bound, {}};
  }
  throw usage_error("--assert ", in_quotes(text),
                    ": write METRIC, one of >= > <= < ==, and a number, as in --assert "
                    "\"eval_f1>=88\"");
}

std::vector<Assertion> baseline_assertions(
    const std::vector<std::string>& baselines, const std::vector<std::string>& tolerances,
    const std::function<bool(const std::string&)>& larger_is_better) {
  if (baselines.empty() && tolerances.empty()) return {};
  if (baselines.empty())
    throw usage_error("--tolerance needs --baseline FILE (an earlier metrics.json)");
  if (tolerances.empty()) {
    throw usage_error("--baseline needs at least one --tolerance, as in --tolerance eval_f1=0.3");
  }
  const std::vector<Baseline> earlier = read_baselines(baselines);
  std::vector<Assertion> assertions;
  for (const std::string& text : tolerances) {
    const Tolerance tolerance = parse_tolerance(text);
    std::vector<double> values;
    for (const Baseline& one : earlier) values.push_back(value_in(one, tolerance, text));
    const Estimate estimate = estimate_of(values);
    const double worse =
        tolerance.is_relative ? tolerance.value / 100 * std::abs(estimate.mean) : tolerance.value;
    const double noise = noise_of_one_more(estimate);
    const bool larger = larger_is_better(tolerance.metric);
    const double bound = larger ? estimate.mean - worse - noise : estimate.mean + worse + noise;
    if (!std::isfinite(bound)) {
      throw usage_error("--tolerance ", in_quotes(text), ": the baselines' values of ",
                        tolerance.metric, " are too large for a bound; give --baseline others");
    }
    // In binary, 88.3 - 0.3 is not exactly 88. A value on the bound must pass.
    const double slack = 1e-12 * std::max(std::abs(estimate.mean), worse);
    const char* sign = larger ? " - " : " + ";
    std::string note =
        concat(estimate.runs == 1 ? "baseline " : concat(estimate.runs, " baselines "),
               shown(estimate.mean), sign, shown(worse));
    if (estimate.runs > 1) note += concat(sign, "noise ", shown(noise));
    assertions.push_back({tolerance.metric, larger ? Comparison::at_least : Comparison::at_most,
                          larger ? bound - slack : bound + slack, std::move(note)});
  }
  return assertions;
}

std::vector<Assertion> gates_of(const std::vector<std::string>& assertions,
                                const std::vector<std::string>& baselines,
                                const std::vector<std::string>& tolerances,
                                const std::vector<std::string>& available) {
  std::vector<Assertion> gates;
  for (const std::string& text : assertions) gates.push_back(parse_assertion(text));
  for (auto& gate : baseline_assertions(baselines, tolerances, larger_is_better)) {
    gates.push_back(std::move(gate));
  }
  check_assertions(gates, available);
  return gates;
}

void check_assertions(const std::vector<Assertion>& assertions,
                      const std::vector<std::string>& available) {
  for (const auto& assertion : assertions) {
    if (std::find(available.begin(), available.end(), assertion.metric) != available.end())
      continue;
    std::vector<std::string> names = available;
    std::sort(names.begin(), names.end());
    const auto near = closest_metric(assertion.metric, available);
    throw usage_error("this run produces no metric ", in_quotes(assertion.metric),
                      near ? concat(" (did you mean ", *near, "?)") : std::string(),
                      "; it produces ", join(names, ", "));
  }
}

const std::vector<std::string>& run_metric_names() {
  static const std::vector<std::string> names{"peak_memory_mb",
                                              "startup_seconds",
                                              "train_epochs",
                                              "train_loss",
                                              "train_rows",
                                              "train_runtime",
                                              "train_samples_per_second",
                                              "train_steps",
                                              "train_tokens_per_second"};
  return names;
}

std::vector<std::string> layout_metric_names(const Layout& layout) {
  std::vector<std::string> names;
  if (layout.pp() > 1) names = {"pipeline_bubble", "pp_bytes"};
  if (layout.tp() > 1) names.emplace_back("tp_bytes");
  if (layout.dp() > 1) names.emplace_back("dp_bytes");
  return names;
}

const std::vector<std::string>& evaluation_metric_names() {
  static const std::vector<std::string> names{"best_step", "eval_rows", "eval_runtime",
                                              "eval_samples_per_second"};
  return names;
}

bool larger_is_better(const std::string& metric) {
  static constexpr std::string_view lower[] = {"_loss",
                                               "_perplexity",
                                               "_mse",
                                               "_mae",
                                               "_runtime",
                                               "_memory_mb",
                                               "startup_seconds",
                                               "_bubble",
                                               "_bytes",
                                               "_ece",
                                               "_brier",
                                               "_ece_calibrated",
                                               "_brier_calibrated",
                                               "_repeated"};
  const std::string of_all = measure_of_all_rows(metric);
  return std::none_of(std::begin(lower), std::end(lower),
                      [&](std::string_view end) { return of_all.ends_with(end); });
}

std::string AssertionReport::failed() const {
  std::vector<std::string> failed;
  for (const GateCheck& check : checks) {
    if (!check.passed) failed.push_back(concat(check.metric, " ", check.value, " ", check.bound));
  }
  return join(failed, "; ");
}

AssertionReport evaluate_assertions(const std::vector<Assertion>& assertions,
                                    const std::map<std::string, double>& metrics) {
  AssertionReport report;
  if (assertions.empty()) return report;
  std::vector<std::array<std::string, 4>> rows{{"metric", "value", "bound", ""}};
  for (const auto& assertion : assertions) {
    auto found = metrics.find(assertion.metric);
    double value =
        found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
    bool passed = assertion.holds(value);
    report.passed = report.passed && passed;
    std::string bound = concat(symbol(assertion.comparison), " ", shown(assertion.bound));
    if (!assertion.note.empty()) bound += concat(" (", assertion.note, ")");
    rows.push_back({assertion.metric, shown(value), bound, passed ? "PASS" : "FAIL"});
    report.checks.push_back({assertion.metric, shown(value), std::move(bound), passed});
  }
  std::array<size_t, 3> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], count_code_points(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < 3; ++i) line += padded(row[i], widths[i] + 2);
    line += row[3];
    line.erase(line.find_last_not_of(' ') + 1);
    report.table += line + "\n";
  }
  return report;
}

}  // namespace finetune
