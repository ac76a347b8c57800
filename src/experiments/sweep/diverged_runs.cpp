// Reads which runs diverged from sweep.json, and compares what they were run with.
#include "experiments/sweep/diverged_runs.h"

#include <nlohmann/json.hpp>

#include "core/files/files.h"
#include "core/sha256.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/prepare/dry_run.h"
#include "train/run/run_directory.h"

namespace finetune {
namespace {

// What sweep.json says of runs that diverged, by name. Of a file that is not one: nothing.
std::map<std::string, RunReport> recorded(const fs::path& file) {
  std::map<std::string, RunReport> out;
  if (kind_of(file, ExitCode::model) != FileKind::file) return out;
  const auto json = nlohmann::json::parse(read_text_file(file, ExitCode::model), nullptr, false);
  if (!json.is_object() || !json.contains("runs") || !json["runs"].is_array()) return out;
  for (const auto& run : json["runs"]) {
    if (!run.is_object() || !run.contains("diverged_with")) continue;
    auto text = [&](const char* key) {
      return run.contains(key) && run[key].is_string() ? run[key].get<std::string>() : "";
    };
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
