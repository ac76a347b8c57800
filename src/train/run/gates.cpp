// Parses assertions and baselines, and evaluates them on final metrics.
#include "train/run/gates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text/printable.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr size_t kMostMetricNames = 40, kLongestMetricName = 60;  // of a file, in a message

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

std::string padded(std::string text, size_t width) {
  size_t length = count_code_points(text);
  if (length < width) text.append(width - length, ' ');
  return text;
}

// For people: enough digits to compare with the bound.
std::string shown(double value) {
  if (!std::isfinite(value)) return "none";
  double magnitude = std::abs(value);
  if (value == std::floor(value) && magnitude < 1e15) return format_fixed(value, 0);
  if (magnitude >= 1e-3 && magnitude < 1e9) {
    std::string text = format_fixed(value, 6);
    text.erase(text.find_last_not_of('0') + 1);
    return text;
  }
  return format_number(value);
}

}  // namespace

bool Assertion::holds(double value) const {
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
    const std::filesystem::path& baseline, const std::vector<std::string>& tolerances,
    const std::function<bool(const std::string&)>& larger_is_better) {
  if (baseline.empty() && tolerances.empty()) return {};
  if (baseline.empty())
    throw usage_error("--tolerance needs --baseline FILE (an earlier metrics.json)");
  if (tolerances.empty()) {
    throw usage_error("--baseline needs at least one --tolerance, as in --tolerance eval_f1=0.3");
  }
  std::map<std::string, double> earlier = read_metrics(baseline);
  std::vector<Assertion> assertions;
  for (const std::string& text : tolerances) {
    size_t at = text.find('=');
    std::string name(trim(std::string_view(text).substr(0, at)));
    auto tolerance = at == std::string::npos
                         ? std::nullopt
                         : parse_double(trim(std::string_view(text).substr(at + 1)));
    if (!is_metric_name(name) || !tolerance || !(*tolerance >= 0) || !std::isfinite(*tolerance)) {
      throw usage_error("--tolerance ", in_quotes(text),
                        ": write METRIC=NUMBER (absolute, not negative), as in --tolerance "
                        "eval_f1=0.3");
    }
    auto found = earlier.find(name);
    if (found == earlier.end()) {
      std::vector<std::string> names;
      for (const auto& entry : earlier) names.push_back(printable(entry.first, kLongestMetricName));
      throw usage_error("--tolerance ", in_quotes(text), ": ", baseline.string(), " has no ", name,
                        "; it has ", join_some(names, kMostMetricNames));
    }
    bool larger = larger_is_better(name);
    double bound = larger ? found->second - *tolerance : found->second + *tolerance;
    // 88.3 - 0.3 is not quite 88 in binary: a value on the bound must pass.
    double slack = 1e-12 * std::max(std::abs(found->second), *tolerance);
    assertions.push_back(
        {name, larger ? Comparison::at_least : Comparison::at_most,
         larger ? bound - slack : bound + slack,
         concat("baseline ", shown(found->second), larger ? " - " : " + ", shown(*tolerance))});
  }
  return assertions;
}

void check_assertions(const std::vector<Assertion>& assertions,
                      const std::vector<std::string>& available) {
  for (const auto& assertion : assertions) {
    if (std::find(available.begin(), available.end(), assertion.metric) != available.end())
      continue;
    std::vector<std::string> names = available;
    std::sort(names.begin(), names.end());
    auto near = closest_match(assertion.metric, available);
    throw usage_error("this run produces no metric ", in_quotes(assertion.metric),
                      near ? concat(" (did you mean ", *near, "?)") : std::string(),
                      "; it produces ", join(names, ", "));
  }
}

const std::vector<std::string>& run_metric_names() {
  static const std::vector<std::string> names{
      "peak_memory_mb", "startup_seconds",          "train_epochs", "train_loss",
      "train_runtime",  "train_samples_per_second", "train_steps",  "train_tokens_per_second"};
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
  static const std::vector<std::string> names{"best_step", "eval_runtime",
                                              "eval_samples_per_second"};
  return names;
}

bool larger_is_better(const std::string& metric) {
  static constexpr std::string_view lower[] = {
      "_loss", "_mse", "_mae", "_runtime", "_memory_mb", "startup_seconds", "_bubble", "_bytes"};
  return std::none_of(std::begin(lower), std::end(lower),
                      [&](std::string_view end) { return metric.ends_with(end); });
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
