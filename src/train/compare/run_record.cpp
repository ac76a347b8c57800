// Reads the files of finished runs.
#include "train/compare/run_record.h"

#include <algorithm>
#include <system_error>

#include "core/error.h"
#include "core/files/files.h"
#include "core/log.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/recipe/recipe.h"
#include "train/run/metrics_files.h"
#include "train/run/run_directory.h"

namespace finetune {
namespace {

bool is_run(const fs::path& directory) {
  return output_state(directory) == OutputState::run;
}

std::vector<fs::path> runs_in(const fs::path& directory) {
  if (is_run(directory)) return {directory};
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (is_run(it->path())) runs.push_back(it->path());
  }
  if (!runs.empty()) {
    std::sort(runs.begin(), runs.end());
    return runs;
  }
  const bool absent = kind_of(directory, ExitCode::model) == FileKind::absent;
  throw model_error(directory.string(),
                    absent ? ": no such directory" : ": is no run of finetune train and holds none",
                    "; give the --output of runs");
}

// Equal for equal numbers, however they are written.
std::string value_of(const ConfigEntry& entry, const std::vector<std::string>& known) {
  const bool is_option = std::find(known.begin(), known.end(), entry.name) != known.end();
  if (!is_option || entry.values.size() != 1) return join(entry.values, ",");
  return spelled_value(kind_of_option(entry.name), entry.values[0]);
}

// Of what recipes decide, those values that all have.
TrainOptions default_options() {
  TrainOptions options;
  options.recipe = recipe_of(options);
  options.warmup_ratio = recipe_hf().warmup_ratio;
  options.layer_lr_decay = recipe_hf().layer_lr_decay;
  return options;
}

std::map<std::string, std::string> default_words() {
  std::map<std::string, std::string> options;
  const std::vector<std::string> names = all_option_names();
  for (const std::string& name : names) options[name];
  const std::string text = write_config(config_items(default_options()), "");
  for (const ConfigEntry& entry : parse_config_text(text, "defaults")) {
    options[entry.name] = value_of(entry, names);
  }
  return options;
}

bool is_mixed(const RunRecord& run) {
  const auto is_set = [&](const char* name) { return run.option(name) == "true"; };
  TrainOptions options;
  options.ngram_mix = run.option("ngram-mix");
  options.recipe = run.option("recipe");
  options.multi_label = run.option("multi-label");
  options.regression = is_set("regression");
  options.no_calibration = is_set("no-calibration");
  options.no_ngram_baseline = is_set("no-ngram-baseline");
  const bool is_evaluated =
      !run.eval_files.empty() || parse_double(run.option("eval-fraction")).value_or(0) != 0;
  return is_evaluated && run.option("task") == "classification" && mixes_with_ngrams(options);
}

RunRecord read_run(const fs::path& directory) {
  RunRecord run;
  run.directory = directory;
  run.options = default_words();
  const std::vector<std::string> names = all_option_names();
  std::vector<ConfigEntry> entries = read_config(directory / "config.toml", ExitCode::model);
  add_values_of_before(entries);
  for (const ConfigEntry& entry : entries) {
    run.options[entry.name] = value_of(entry, names);
    if (entry.name == "train") run.train_files = {entry.values.begin(), entry.values.end()};
    if (entry.name == "eval") run.eval_files = {entry.values.begin(), entry.values.end()};
    if (entry.name == "text-column") run.text_columns = entry.values;
  }
  run.is_mixed = is_mixed(run);
  for (const char* name : {"metrics.jsonl", "per_class.csv", "predictions.csv", "predictions.json",
                           "nbest_predictions.json"}) {
    const fs::path file = directory / name;
    if (path_exists(file, ExitCode::model)) require_file(file, ExitCode::model);
  }
  if (path_exists(directory / "run.json", ExitCode::model)) {
    run.facts = read_facts(directory / "run.json");
    for (const auto& [name, value] : run.facts) {
      if (name == "data_sha256") run.data_sha256 = value;
      if (name == "model_sha256") run.model_sha256 = value;
    }
  }
  run.metrics = read_metrics(directory / "metrics.json", ExitCode::model);
  return run;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> changed_options(const RunRecord& run) {
  const std::map<std::string, std::string> defaults = default_words();
  std::vector<std::pair<std::string, std::string>> changed;
  for (const std::string& name : all_option_names()) {
    const std::string& value = run.option(name);
    if (value != defaults.at(name)) changed.emplace_back(name, value);
  }
  return changed;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& directories) {
  std::vector<RunRecord> runs;
  std::vector<fs::path> seen;
  for (const std::string& given : directories) {
    for (const fs::path& directory : runs_in(given)) {
      const fs::path same = fs::absolute(directory / "").lexically_normal();
      if (std::find(seen.begin(), seen.end(), same) != seen.end()) {
        throw usage_error(directory.string(), ": is given twice");
      }
      seen.push_back(same);
      if (has_ended(directory))
        runs.push_back(read_run(directory));
      else
        warn(directory.string(), ": has not come to its end and is left out");
    }
  }
  if (runs.empty()) {
    throw model_error(directories.at(0), ": no finished run; finetune train --resume goes on");
  }
  return runs;
}

}  // namespace finetune
