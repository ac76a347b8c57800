// Orders a sweep's runs by their data, finds their lengths and checks them.
#include "experiments/sweep/preflight.h"

#include <algorithm>
#include <numeric>

#include "comm/agreement.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/sha256.h"
#include "core/text/json_value.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/prepare/dry_run.h"
#include "train/run/run_directory.h"

namespace finetune {

std::vector<size_t> in_order_of_data(const Grid& grid, std::vector<size_t> runs) {
  std::vector<std::string> keys;
  auto place = [&](size_t run) {
    const std::string key = SharedInputs::key(grid.runs[run].options);
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) return found - keys.begin();
    keys.push_back(key);
    return ptrdiff_t(keys.size()) - 1;
  };
  std::vector<std::pair<ptrdiff_t, size_t>> order;
  for (size_t run : runs) order.emplace_back(place(run), run);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = order[i].second;
  return runs;
}

std::vector<RunLength> lengths_of(const Grid& grid, SharedInputs& inputs) {
  std::vector<RunLength> lengths(grid.runs.size());
  std::vector<size_t> all(lengths.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::string key;
  std::optional<RecipeFacts> facts;
  for (size_t run : in_order_of_data(grid, all)) {
    const TrainOptions& options = grid.runs[run].options;
    if (!options.time_budget.empty()) {
      throw usage_error(
          "--halving stops runs at shares of their length, which time-budget chooses ",
          "later; leave one of them out");
    }
    const std::string own = SharedInputs::key(options);
    if (own != key) facts = facts_with_evaluation(options, inputs);
    if (!facts) throw usage_error("--halving needs evaluation data: give eval or eval-fraction");
    key = own;
    lengths[run] = length_of(options, *facts);
  }
  return lengths;
}

void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs) {
  if (runs.empty()) return;
  comm.note("reading data and model", -1);
  agree_on_errors(comm, [&] {
    if (comm.local_rank() != 0) return;
    std::vector<NamedRun> named;
    for (size_t run : runs) {
      const SweepRun& one = grid.runs[run];
      named.push_back({one.options, concat(grid.file, ": run ", one.name)});
    }
    check_options_of(named, comm.size(), inputs);
  });
  discard_held_lines();
}

namespace {

// Returns the reports of diverged runs in sweep.json, by name; none if the file is not valid.
std::map<std::string, RunReport> recorded(const fs::path& file) {
  std::map<std::string, RunReport> out;
  if (kind_of(file, ExitCode::model) != FileKind::file) return out;
  const JsonValue json = JsonValue::parse(read_text_file(file, ExitCode::model));
  for (const JsonValue& run : json["runs"].items()) {
    if (!run.contains("diverged_with")) continue;
    auto text = [&](const char* key) { return run[key].as<std::string>().value_or(""); };
    RunReport& report = out[text("name")];
    report.status = RunStatus::failed;
    report.code = ExitCode::diverged;
    report.error = text("error");
    report.diverged_with = text("diverged_with");
    report.kept = true;
  }
  return out;
}

}  // namespace

std::string divergence_key(const SweepRun& run, SharedInputs& inputs) {
  const InputSums sums = input_sums(run.options, inputs);
  return sha256_of(concat(FINETUNE_VERSION, "\n",
                          write_config(config_items(with_absolute_paths(run.options)), ""),
                          sums.data, "\n", sums.model));
}

std::map<size_t, RunReport> diverged_before(const Grid& grid, const std::vector<size_t>& runs,
                                            SharedInputs& inputs) {
  std::map<size_t, RunReport> out;
  const auto known = recorded(fs::path(grid.fixed.output) / "sweep.json");
  for (size_t place : runs) {
    const SweepRun& run = grid.runs[place];
    const auto found = known.find(run.name);
    if (found == known.end() || output_state(run.options.output) != OutputState::run) continue;
    if (found->second.diverged_with == divergence_key(run, inputs)) out[place] = found->second;
  }
  return out;
}

}  // namespace finetune
