// Forecasts the runs of a grid and adds them up.
#include "experiments/sweep/sweep_plan.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/files/files.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/threads/parallel.h"
#include "experiments/compare/run_record.h"
#include "experiments/sweep/halving.h"
#include "experiments/sweep/preflight.h"
#include "experiments/sweep/sweep_directory.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/plan/plan.h"
#include "train/run/run_directory.h"

namespace finetune {
namespace {

// Options that change neither the time of a step, nor the number of steps, nor file sizes.
constexpr std::array<std::string_view, 20> kWithoutCost{"output",          "lr",
                                                        "schedule",        "warmup-ratio",
                                                        "warmup-steps",    "weight-decay",
                                                        "adam-beta1",      "adam-beta2",
                                                        "adam-epsilon",    "seed",
                                                        "max-grad-norm",   "layer-lr-decay",
                                                        "assert",          "class-weights",
                                                        "label-smoothing", "best-metric",
                                                        "no-calibration",  "tune-thresholds",
                                                        "no-standardize",  "ngram-mix"};

std::string cost_key(const TrainOptions& options) {
  std::vector<ConfigItem> items = config_items(options);
  std::erase_if(items, [&](const ConfigItem& item) {
    if (item.name == "seed" && options.eval_fraction != 0) return false;  // other rows
    return std::find(kWithoutCost.begin(), kWithoutCost.end(), item.name) != kWithoutCost.end();
  });
  return write_config(items, "");
}

PlannedState state_of(const fs::path& directory) {
  if (output_state(directory) != OutputState::run) return PlannedState::fresh;
  const bool is_whole = has_ended(directory) && lost_parts(directory).empty();
  return is_whole ? PlannedState::finished : PlannedState::begun;
}

// Runs begin in order, each as soon as one of `jobs` has ended.
double makespan(const std::vector<PlannedRun>& runs, int64_t jobs) {
  std::vector<double> ends(static_cast<size_t>(jobs));
  for (const PlannedRun& run : runs) *std::min_element(ends.begin(), ends.end()) += run.seconds;
  return *std::max_element(ends.begin(), ends.end());
}

// Returns the share of all runs' work that is done with these rungs.
double halved_share(int64_t settings, const std::vector<double>& shares, int64_t eta) {
  double done = 0, before = 0;
  int64_t alive = settings;
  for (double share : shares) {
    done += double(alive) / double(settings) * (share - before);
    before = share;
    alive = (alive + eta - 1) / eta;
  }
  return done + double(alive) / double(settings) * (1 - before);
}

std::string_view name_of(PlannedState state) {
  switch (state) {
    case PlannedState::fresh:
      return "new";
    case PlannedState::begun:
      return "begun";
    case PlannedState::finished:
      return "finished";
    case PlannedState::diverged:
      return "diverged";
  }
  return "";
}

// Whether the run needs no more work.
bool is_over(PlannedState state) {
  return state == PlannedState::finished || state == PlannedState::diverged;
}

// Returns the states of all runs. Finds runs that would diverge again as a sweep does.
std::vector<PlannedState> states_of(const Grid& grid, SharedInputs& inputs) {
  std::vector<PlannedState> states;
  std::vector<size_t> begun;
  for (size_t r = 0; r < grid.runs.size(); ++r) {
    states.push_back(state_of(grid.runs[r].options.output));
    if (states[r] == PlannedState::begun) begun.push_back(r);
  }
  for (const auto& [run, report] : diverged_before(grid, begun, inputs)) {
    states[run] = PlannedState::diverged;
  }
  return states;
}

double mebibytes(uint64_t bytes) {
  return double(bytes) / (1 << 20);
}

}  // namespace

SweepPlan plan_sweep(const Grid& grid, const SweepSettings& settings) {
  check_sweep_directory(grid);
  SweepPlan plan;
  std::map<std::string, RunPlan> known;
  double startup = -1;
  uint64_t most_on_the_way = 0;
  SharedInputs inputs;
  std::vector<double> rungs;
  if (settings.halving > 0) rungs = rungs_of(grid, lengths_of(grid, inputs), settings.halving);
  for (PlannedState state : states_of(grid, inputs)) {
    TrainOptions options = grid.runs[plan.runs.size()].options;
    PlannedRun& planned = plan.runs.emplace_back();
    planned.state = state;
    if (is_over(state)) continue;
    if (!options.threads && settings.jobs > 1) {
      options.threads = std::max<int64_t>(1, available_cores() / settings.jobs);
    }
    auto [found, is_new] = known.try_emplace(cost_key(options));
    if (is_new) found->second = plan_run(options, 1, true, inputs);
    discard_held_lines();
    const RunPlan& forecast = found->second;
    // A forecast's startup counts from the program's start, so only the first one is right.
    if (startup < 0) startup = forecast.time.startup;
    planned.seconds = forecast.time.total - forecast.time.startup + startup;
    planned.peak = forecast.disk.peak;
    planned.left = forecast.disk.left;
    plan.left += planned.left;
    most_on_the_way =
        std::max(most_on_the_way, planned.peak - std::min(planned.peak, planned.left));
  }
  plan.seconds = makespan(plan.runs, settings.jobs);
  plan.peak = plan.left + uint64_t(settings.jobs) * most_on_the_way;
  if (settings.halving == 0 || known.empty()) return plan;
  // Runs that wait at a rung keep checkpoints, and any run may continue: add all peaks.
  plan.seconds *= halved_share(int64_t(settings_of(grid).size()), rungs, settings.halving);
  plan.peak = 0;
  for (const PlannedRun& run : plan.runs) plan.peak += run.peak;
  return plan;
}

std::string sweep_plan_text(const Grid& grid, const SweepSettings& settings,
                            const SweepPlan& plan) {
  size_t width = 0;
  for (const SweepRun& run : grid.runs) width = std::max(width, run.name.size());
  std::string out;
  int64_t to_run = 0;
  for (size_t r = 0; r < plan.runs.size(); ++r) {
    const PlannedRun& run = plan.runs[r];
    const std::string& name = grid.runs[r].name;
    out += concat("  ", name, std::string(width - name.size() + 2, ' '), name_of(run.state));
    if (!is_over(run.state)) {
      ++to_run;
      out += concat(run.state == PlannedState::fresh ? "    " : "  ", format_duration(run.seconds));
    }
    out += "\n";
  }
  out = concat(counted(plan.runs.size(), "run"), ", ", to_run, " to do, ", settings.jobs,
               " at a time\n", out);
  return concat(out, "time  ", format_duration(plan.seconds),
                settings.halving > 0 ? " with --halving, about" : "",
                ", runs that have begun counted whole\ndisk  ",
                format_fixed(mebibytes(plan.peak), 1), " MiB at most, ",
                format_fixed(mebibytes(plan.left), 1), " MiB in the end",
                settings.halving > 0 ? " if all went on" : "", ", besides what has ended\n");
}

std::string sweep_plan_json(const Grid& grid, const SweepPlan& plan) {
  JsonArray runs;
  for (size_t r = 0; r < plan.runs.size(); ++r) {
    const PlannedRun& run = plan.runs[r];
    runs.add(JsonObject{{"name", grid.runs[r].name},
                        {"output", grid.runs[r].options.output},
                        {"state", name_of(run.state)},
                        {"total_seconds", run.seconds},
                        {"peak_disk_mb", mebibytes(run.peak)},
                        {"final_disk_mb", mebibytes(run.left)}});
  }
  const JsonObject out{{"sweep", grid.fixed.output},
                       {"runs", runs},
                       {"total_seconds", plan.seconds},
                       {"peak_disk_mb", mebibytes(plan.peak)},
                       {"final_disk_mb", mebibytes(plan.left)}};
  return printable_json(out.text()) + "\n";
}

}  // namespace finetune
