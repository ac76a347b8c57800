// Finds the options that differ between runs, groups the runs and averages their metrics.
#include "experiments/compare/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/text/text.h"
#include "tasks/scores/metric_table.h"
#include "train/options/option_values.h"
#include "train/run/gates.h"

namespace finetune {
namespace {

constexpr const char* kIncomplete = "incomplete";

// Runs with the same options can differ in these: file contents, mixing, device, failed parts.
constexpr std::array<const char*, 5> kOutcomes{"model", "train", "ngram-mix", "device",
                                               kIncomplete};

// Options that may change a result, in the order of --help, except the seed; then "incomplete".
std::vector<std::string> names_that_matter() {
  const std::vector<std::string> result = result_option_names();
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> names;
  for (const std::string& name : all_option_names()) {
    if (name == "seed") continue;
    const bool matters = has(kOutcomes, name) || has(result, name) || name == "no-deterministic" ||
                         name == "comm-precision";
    if (matters) names.push_back(name);
  }
  names.emplace_back(kIncomplete);
  return names;
}

// Data and models are compared by the content of their files.
std::string content_of(const RunRecord& run, const std::string& name) {
  if (name == "model") return run.model_sha256;
  return name == "train" ? run.data_sha256 : run.effective(name);
}

std::vector<std::string> differing_options(const std::vector<RunRecord>& runs,
                                           const std::vector<size_t>& among) {
  std::vector<std::string> names;
  for (const std::string& name : names_that_matter()) {
    std::set<std::string> contents;
    for (size_t run : among) {
      if (has_effect(runs[run], name)) contents.insert(content_of(runs[run], name));
    }
    if (contents.size() > 1) names.push_back(name);
  }
  return names;
}

// Leaves out each run that has the weights, options and seed of an earlier run.
std::vector<size_t> distinct_runs(const std::vector<RunRecord>& runs,
                                  std::vector<RepeatedRun>& repeated) {
  const std::vector<std::string> names = names_that_matter();
  std::map<std::vector<std::string>, size_t> known;
  std::vector<size_t> distinct;
  for (size_t run = 0; run < runs.size(); ++run) {
    std::vector<std::string> key{runs[run].weights_sha256, runs[run].option("seed")};
    for (const std::string& name : names) key.push_back(content_of(runs[run], name));
    const auto [first, is_new] = known.emplace(std::move(key), run);
    if (is_new || runs[run].weights_sha256.empty())
      distinct.push_back(run);
    else
      repeated.push_back({run, first->second});
  }
  return distinct;
}

// Returns the kOutcomes that differ between runs with the same options in one row of `by`.
std::vector<std::string> differing_outcomes(const std::vector<RunRecord>& runs,
                                            const std::vector<size_t>& among,
                                            const std::vector<std::string>& by) {
  const std::vector<std::string> names = names_that_matter();
  std::map<std::vector<std::string>, size_t> known;  // by options as given
  std::set<std::string> found;
  for (size_t run : among) {
    std::vector<std::string> key;
    for (const std::string& name : by) key.push_back(runs[run].effective(name));
    for (const std::string& name : names) {
      if (name != kIncomplete) key.push_back(runs[run].option(name));
    }
    const size_t first = known.emplace(std::move(key), run).first->second;
    for (const char* name : kOutcomes) {
      if (content_of(runs[run], name) != content_of(runs[first], name)) found.insert(name);
    }
  }
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const bool is_in_row = std::find(by.begin(), by.end(), name) != by.end();
    if (found.contains(name) && !is_in_row) out.push_back(name);
  }
  return out;
}

// Returns an option's value as a row shows it: for files with an ambiguous name, their sha256.
std::string shown_value(const std::vector<RunRecord>& runs, const RunRecord& run,
                        const std::string& name) {
  if (!has_effect(run, name)) return "";
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

std::string kind_of_task(const RunRecord& run) {
  if (run.option("regression") == "true") return "regression";
  return run.option("multi-label").empty() ? run.option("task") : "multi-label classification";
}

// Returns the metric that ranks the groups if --metric is not given.
std::string deciding_metric(const std::vector<RunRecord>& runs,
                            const std::vector<std::string>& common) {
  const RunRecord& first = runs.front();
  for (const RunRecord& run : runs) {
    if (kind_of_task(run) == kind_of_task(first)) continue;
    throw usage_error(printable_path(first.directory), " is a run of ", kind_of_task(first),
                      " and ", printable_path(run.directory), " of ", kind_of_task(run),
                      ": compare the runs of one task at a time, or name a metric that all have "
                      "with --metric");
  }
  const auto has = [&](const std::string& name) {
    return std::find(common.begin(), common.end(), name) != common.end();
  };
  for (const RunRecord& run : runs) {
    const std::string& best = run.option("best-metric");
    if (has(best)) return best;
    if (!run.metrics.contains(best)) continue;  // it has no evaluation data
    const auto lacking = std::find_if(runs.begin(), runs.end(), [&](const RunRecord& other) {
      return !other.metrics.contains(best);
    });
    throw usage_error(printable_path(lacking->directory), ": has no ", best, ", which ",
                      printable_path(run.directory),
                      " has; leave one of them out, or name a metric that all have with --metric",
                      has("train_loss") ? " train_loss" : "");
  }
  if (has("train_loss")) return "train_loss";
  throw usage_error("--metric is needed: the runs have no train_loss");
}

std::vector<std::string> chosen_metrics(const std::vector<RunRecord>& runs,
                                        const std::vector<std::string>& asked) {
  constexpr size_t kMostNames = 12;
  const std::vector<std::string> common = common_metrics(runs);
  auto has = [&](const std::string& name) {
    return std::find(common.begin(), common.end(), name) != common.end();
  };
  std::vector<std::string> chosen;
  for (const std::string& name : asked) {
    const std::string full = has(name) ? name : concat("eval_", name);
    if (!has(full)) {
      const auto near = closest_metric(name, common);
      throw usage_error("--metric ", in_quotes(name),
                        near ? concat(" (did you mean ", *near, "?)") : "",
                        ": the runs have in common ",
                        common.empty() ? "no metric" : join_some(common, kMostNames));
    }
    chosen.push_back(full);
  }
  if (!chosen.empty()) return chosen;
  chosen.push_back(deciding_metric(runs, common));
  for (const std::string& name : common) {
    const bool is_quality = name != "eval_runtime" && name != "eval_samples_per_second" &&
                            name != "eval_temperature" && !name.starts_with("eval_mix_");
    if (name.starts_with("eval_") && is_quality && name != chosen.front()) chosen.push_back(name);
  }
  return chosen;
}

// Whether most readers look for this metric. Others measure calibration or are averages.
bool is_usual(const std::string& metric) {
  const MetricInfo* info = find_metric(metric);
  return info && info->is(kUsual);
}

// Sorts numbers by size, before other values.
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

void check_names(const std::vector<std::string>& by) {
  std::vector<std::string> known = all_option_names();
  known.emplace_back(kIncomplete);
  for (const std::string& name : by) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto nearest = closest_match(name, known);
    throw usage_error("--by ", in_quotes(name), ": train has no such option",
                      nearest ? concat(" (did you mean ", *nearest, "?)") : "");
  }
}

// Groups these runs into rows, and finds the options that differ inside a row.
void add_groups(const std::vector<RunRecord>& runs, const std::vector<size_t>& among,
                RunComparison& out) {
  for (size_t run : among) {
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
}

}  // namespace

std::vector<std::string> differing_options(const std::vector<RunRecord>& runs) {
  std::vector<size_t> all(runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return differing_options(runs, all);
}

RunComparison compare_runs(const std::vector<RunRecord>& runs, const std::vector<std::string>& by,
                           const std::vector<std::string>& metrics) {
  RunComparison out;
  check_names(by);
  const std::vector<size_t> distinct = distinct_runs(runs, out.repeated);
  out.options = by.empty() ? differing_options(runs, distinct) : by;
  if (!by.empty()) {
    for (const std::string& name : differing_outcomes(runs, distinct, by)) {
      out.options.push_back(name);
    }
  }
  out.metrics = chosen_metrics(runs, metrics);
  const auto others = std::stable_partition(out.metrics.begin() + 1, out.metrics.end(), is_usual);
  out.shown = metrics.empty() ? size_t(others - out.metrics.begin()) : out.metrics.size();
  out.larger_is_better = larger_is_better(out.deciding());
  add_groups(runs, distinct, out);
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

size_t best_run(const RunComparison& comparison, const std::vector<RunRecord>& runs) {
  const std::string& metric = comparison.deciding();
  const std::vector<size_t>& candidates = comparison.groups[comparison.best].runs;
  return *std::min_element(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
    const double x = runs[a].metrics.at(metric), y = runs[b].metrics.at(metric);
    return comparison.larger_is_better ? x > y : x < y;
  });
}

}  // namespace finetune
