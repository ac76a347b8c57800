// Finds what differs between runs, groups them and averages their metrics.
#include "train/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>

#include "core/error.h"
#include "core/text/text.h"
#include "train/options/option_values.h"
#include "train/run/gates.h"

namespace finetune {
namespace {

// Whether runs that differ in this option alone may give other results, as all of `result` do. Data
// and models are files: their content counts.
bool matters(const std::string& name, const std::vector<std::string>& result) {
  if (name == "seed") return false;
  return name == "no-deterministic" || name == "comm-precision" || name == "ngram-mix" ||
         std::find(result.begin(), result.end(), name) != result.end();
}

template <typename Value>
bool differs(const std::vector<RunRecord>& runs, const std::vector<size_t>& among, Value value_of) {
  return std::any_of(among.begin(), among.end(), [&](size_t run) {
    return value_of(runs[run]) != value_of(runs[among.front()]);
  });
}

// In the order of --help.
std::vector<std::string> differing_options(const std::vector<RunRecord>& runs,
                                           const std::vector<size_t>& among) {
  const std::vector<std::string> result = result_option_names();
  std::vector<std::string> names;
  for (const std::string& name : all_option_names()) {
    const bool counts = matters(name, result);
    const auto content = [&](const RunRecord& run) {
      if (name == "model") return run.model_sha256;
      if (name == "train") return run.data_sha256;
      return counts ? run.effective(name) : std::string();
    };
    if (differs(runs, among, content)) names.push_back(name);
  }
  return names;
}

// What a group is told by: the option as given, or of files that differ under one name their sum.
std::string shown_value(const std::vector<RunRecord>& runs, const RunRecord& run,
                        const std::string& name) {
  std::string value = run.effective(name);
  if (name != "model" && name != "train") return value;
  const std::string& sum = name == "model" ? run.model_sha256 : run.data_sha256;
  const bool ambiguous = std::any_of(runs.begin(), runs.end(), [&](const RunRecord& other) {
    const std::string& others = name == "model" ? other.model_sha256 : other.data_sha256;
    return (other.option(name) == value) != (others == sum);
  });
  return ambiguous && !sum.empty() ? sum.substr(0, 12) : value;
}

std::vector<std::string> common_metrics(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : runs.front().metrics) {
    const bool common = std::all_of(runs.begin(), runs.end(), [&, key = name](const auto& run) {
      return run.metrics.contains(key);
    });
    if (common) names.push_back(name);
  }
  return names;
}

std::vector<std::string> chosen_metrics(const std::vector<RunRecord>& runs,
                                        const std::vector<std::string>& asked) {
  const std::vector<std::string> common = common_metrics(runs);
  auto has = [&](const std::string& name) {
    return std::find(common.begin(), common.end(), name) != common.end();
  };
  std::vector<std::string> chosen;
  for (const std::string& name : asked) {
    const std::string full = has(name) ? name : concat("eval_", name);
    if (!has(full)) {
      throw usage_error("--metric ", in_quotes(name), ": the runs have in common ",
                        common.empty() ? "no metric" : join(common, ", "));
    }
    chosen.push_back(full);
  }
  if (!chosen.empty()) return chosen;
  const std::string& best = runs.front().option("best-metric");
  chosen.push_back(has(best) ? best : "train_loss");
  if (!has(chosen.front())) throw usage_error("--metric is needed: the runs have no train_loss");
  for (const std::string& name : common) {
    const bool is_quality = name != "eval_runtime" && name != "eval_samples_per_second" &&
                            name != "eval_temperature" && !name.starts_with("eval_mix_");
    if (name.starts_with("eval_") && is_quality && name != best) chosen.push_back(name);
  }
  return chosen;
}

// Those that a reader looks for; there are some ten more, of calibration and averages.
bool is_usual(const std::string& metric) {
  constexpr std::string_view usual[] = {"eval_loss",   "eval_accuracy",    "eval_f1_macro",
                                        "eval_f1",     "eval_exact_match", "eval_mse",
                                        "eval_pearson"};
  return std::find(std::begin(usual), std::end(usual), metric) != std::end(usual);
}

// Numbers by size, before all else.
bool comes_before(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const auto x = parse_double(a[i]), y = parse_double(b[i]);
    if (x && y) return *x < *y;
    return x.has_value() != y.has_value() ? x.has_value() : a[i] < b[i];
  }
  return false;
}

void add_estimates(const std::vector<RunRecord>& runs, const std::vector<std::string>& metrics,
                   RunGroup& group) {
  for (const std::string& metric : metrics) {
    std::vector<double> values;
    for (size_t run : group.runs) values.push_back(runs[run].metrics.at(metric));
    group.metrics[metric] = estimate_of(values);
  }
}

}  // namespace

Estimate estimate_of(const std::vector<double>& values) {
  Estimate out;
  out.runs = int64_t(values.size());
  const double n = double(out.runs);
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - out.mean) * (value - out.mean);
  if (out.runs > 1) out.sd = std::sqrt(squares / (n - 1));
  return out;
}

std::vector<std::string> differing_options(const std::vector<RunRecord>& runs) {
  std::vector<size_t> all(runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return differing_options(runs, all);
}

RunComparison compare_runs(const std::vector<RunRecord>& runs, const std::vector<std::string>& by,
                           const std::vector<std::string>& metrics) {
  RunComparison out;
  std::vector<size_t> all(runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const std::vector<std::string> known = all_option_names();
  for (const std::string& name : by) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto nearest = closest_match(name, known);
    throw usage_error("--by ", in_quotes(name), ": train has no such option",
                      nearest ? concat(" (did you mean ", *nearest, "?)") : "");
  }
  out.options = by.empty() ? differing_options(runs, all) : by;
  out.metrics = chosen_metrics(runs, metrics);
  const auto others = std::stable_partition(out.metrics.begin() + 1, out.metrics.end(), is_usual);
  out.shown = metrics.empty() ? size_t(others - out.metrics.begin()) : out.metrics.size();
  out.larger_is_better = larger_is_better(out.deciding());
  for (size_t run : all) {
    std::vector<std::string> values;
    for (const std::string& name : out.options)
      values.push_back(shown_value(runs, runs[run], name));
    auto group = std::find_if(out.groups.begin(), out.groups.end(),
                              [&](const RunGroup& other) { return other.values == values; });
    if (group == out.groups.end()) {
      out.groups.push_back({std::move(values), {}, {}, {}});
      group = out.groups.end() - 1;
    }
    group->runs.push_back(run);
  }
  for (RunGroup& group : out.groups) {
    add_estimates(runs, out.metrics, group);
    for (const std::string& name : differing_options(runs, group.runs)) {
      if (std::find(out.within.begin(), out.within.end(), name) == out.within.end()) {
        out.within.push_back(name);
      }
    }
  }
  auto is_better = [&](const RunGroup& a, const RunGroup& b) {
    const double x = a.metrics.at(out.deciding()).mean, y = b.metrics.at(out.deciding()).mean;
    return out.larger_is_better ? x > y : x < y;
  };
  std::stable_sort(out.groups.begin(), out.groups.end(), [&](const RunGroup& a, const RunGroup& b) {
    return by.empty() ? is_better(a, b) : comes_before(a.values, b.values);
  });
  out.best = size_t(std::min_element(out.groups.begin(), out.groups.end(), is_better) -
                    out.groups.begin());
  return out;
}

}  // namespace finetune
