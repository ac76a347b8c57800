// Chooses the settings that continue, and reads the runs' metrics so far.
#include "experiments/sweep/halving.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/files/files.h"
#include "data/plan.h"
#include "train/options/config_file.h"
#include "train/run/gates.h"
#include "train/run/metrics_files.h"
#include "train/run/run_directory.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

std::string best_metric_of(const fs::path& directory) {
  return first_value(read_config(directory / "config.toml", ExitCode::model), "best-metric");
}

}  // namespace

std::vector<Setting> settings_of(const Grid& grid) {
  std::vector<Setting> settings;
  std::map<std::vector<std::string>, size_t> places;
  for (size_t r = 0; r < grid.runs.size(); ++r) {
    std::vector<std::string> values;
    for (size_t o = 0; o < grid.options.size(); ++o) {
      if (grid.options[o] != "seed") values.push_back(grid.runs[r].values[o]);
    }
    const auto [found, is_new] = places.emplace(std::move(values), settings.size());
    if (is_new) settings.emplace_back();
    settings[found->second].runs.push_back(r);
  }
  return settings;
}

std::vector<double> rung_shares(int64_t settings, int64_t evaluations, int64_t eta) {
  std::vector<double> shares;
  int64_t power = eta;
  for (; power <= std::min(settings, evaluations); power *= eta) {
    shares.insert(shares.begin(), 1.0 / double(power));
  }
  return shares;
}

std::vector<double> rungs_of(const Grid& grid, const std::vector<RunLength>& lengths, int64_t eta) {
  int64_t evaluations = INT64_MAX;
  for (const RunLength& length : lengths) {
    evaluations = std::min(evaluations, length.evaluations());
  }
  const auto settings = int64_t(settings_of(grid).size());
  std::vector<double> shares = rung_shares(settings, evaluations, eta);
  if (!shares.empty()) return shares;
  throw usage_error("--halving ", eta, " needs ", eta, " settings (seeds apart) and ", eta,
                    " evaluations a run; there ", settings == 1 ? "is " : "are ", settings, " and ",
                    evaluations, settings < eta ? "" : "; eval-every gives more");
}

std::vector<size_t> survivors(const std::vector<std::optional<double>>& values,
                              bool larger_is_better, int64_t eta) {
  std::vector<size_t> order;
  for (size_t s = 0; s < values.size(); ++s) {
    if (values[s] && std::isfinite(*values[s])) order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return larger_is_better ? *values[a] > *values[b] : *values[a] < *values[b];
  });
  const size_t most = (values.size() + size_t(eta) - 1) / size_t(eta);
  order.resize(std::min(order.size(), most));
  return order;
}

RunLength length_of(TrainOptions options, const RecipeFacts& facts) {
  fill_recipe(options, options, facts);
  return {make_schedule(options, facts.samples).total_steps,
          options.eval_every.value_or(steps_per_epoch(facts.samples, *options.batch_size))};
}

std::optional<RungValue> value_at(const SweepRun& run, int64_t step) {
  const fs::path directory = run.options.output;
  if (!path_exists(directory / "config.toml", ExitCode::model)) return std::nullopt;
  RungValue best{best_metric_of(directory), 0, {}};
  const bool larger = larger_is_better(best.metric);
  bool any = false, has_come = has_ended(directory);
  for (const NamedNumbers& line : read_metrics_log(directory / "metrics.jsonl")) {
    const std::map<std::string, double> entry(line.begin(), line.end());
    if (entry.contains("loss") || !entry.contains("step")) continue;
    const auto at = int64_t(entry.at("step"));
    has_come = has_come || at >= step;
    const auto found = entry.find(best.metric);
    // Step 0 is a baseline: the model before its training.
    if (at == 0 || at > step || found == entry.end()) continue;
    if (!any || (larger ? found->second > best.value : found->second < best.value)) {
      best.value = found->second;
    }
    any = true;
    best.metrics.clear();
    for (const auto& [name, value] : entry) {
      if (name.starts_with("eval_")) best.metrics[name] = value;
    }
  }
  return has_come && any ? std::optional(best) : std::nullopt;
}

}  // namespace finetune
