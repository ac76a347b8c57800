// Reads the files of finished runs.
#include "experiments/compare/run_record.h"

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

// Returns the entry's value, with one spelling for equal numbers.
std::string value_of(const ConfigEntry& entry, const std::vector<std::string>& known) {
  const bool is_option = std::find(known.begin(), known.end(), entry.name) != known.end();
  if (!is_option || entry.values.size() != 1) return join(entry.values, ",");
  return spelled_value(kind_of_option(entry.name), entry.values[0]);
}

// The defaults, with the recipes' values that hf and auto have in common.
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

// Whether the options ask for a mix with n-grams.
bool wants_mix(const RunRecord& run) {
  const auto is_set = [&](const char* name) { return run.option(name) == "true"; };
  TrainOptions options;
  options.ngram_mix = run.option("ngram-mix");
  options.recipe = run.option("recipe");
  options.multi_label = run.option("multi-label");
  options.regression = is_set("regression");
  options.no_calibration = is_set("no-calibration");
  options.no_ngram_baseline = is_set("no-ngram-baseline");
  const bool is_evaluated = !run.eval_files.empty() || !run.option("folds").empty() ||
                            parse_double(run.option("eval-fraction")).value_or(0) != 0;
  return is_evaluated && run.option("task") == "classification" && mixes_with_ngrams(options);
}

// Throws if the file is missing, or is a link, which might lead outside the run.
void require_own_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    throw model_error(printable_path(path),
                      ": is a symbolic link, a file of the run itself is needed");
  }
  if (!path_exists(path, ExitCode::model)) {
    throw model_error(printable_path(path), ": is missing; restore it, or leave the run out");
  }
  require_file(path, ExitCode::model);
}

void require_own_files(const fs::path& directory) {
  for (const char* name : {"config.toml", "run.json", "metrics.json"}) {
    require_own_file(directory / name);
  }
  for (const char* name : {"metrics.jsonl", "per_class.csv", "predictions.csv", "predictions.json",
                           "nbest_predictions.json"}) {
    std::error_code error;
    const fs::path path = directory / name;
    if (fs::symlink_status(path, error).type() != fs::file_type::not_found) require_own_file(path);
  }
}

void read_options(const fs::path& path, RunRecord& run) {
  const std::vector<std::string> names = all_option_names();
  std::vector<ConfigEntry> entries = read_config(path, ExitCode::model);
  const bool is_cut = std::none_of(entries.begin(), entries.end(), [](const ConfigEntry& entry) {
    return entry.name == "output";  // every run has it, at the end
  });
  if (is_cut) {
    throw model_error(printable_path(path),
                      ": is damaged, its last lines are missing; restore it, or leave the run out");
  }
  add_values_of_before(entries);
  for (const ConfigEntry& entry : entries) {
    run.options[entry.name] = value_of(entry, names);
    if (entry.name == "train") run.train_files = {entry.values.begin(), entry.values.end()};
    if (entry.name == "eval") run.eval_files = {entry.values.begin(), entry.values.end()};
    if (entry.name == "text-column") run.text_columns = entry.values;
  }
}

// Removes the threads from "CPU, AVX-512 with BF16, bf16, 2 threads": they change no bits.
std::string device_of(const std::string& code_path) {
  const size_t comma = code_path.rfind(", ");
  const bool has_threads =
      comma != std::string::npos && code_path.find(" thread", comma) != std::string::npos;
  return has_threads ? code_path.substr(0, comma) : code_path;
}

// "ngrams: there is no room in /tmp; calibration: ..." -> "ngrams, calibration"
std::string parts_lost(const std::string& incomplete) {
  std::vector<std::string> parts;
  for (std::string_view line : split(incomplete, ';')) {
    const std::string part(trim(line.substr(0, line.find(':'))));
    const bool is_name = line.find(':') != line.npos && part.find(' ') == part.npos;
    if (is_name && !part.empty()) parts.push_back(part);
  }
  return join(parts, ", ");
}

RunRecord read_run(const fs::path& directory) {
  RunRecord run;
  run.directory = directory;
  run.options = default_words();
  require_own_files(directory);
  read_options(directory / "config.toml", run);
  run.facts = read_facts(directory / "run.json");
  for (const auto& [name, value] : run.facts) {
    if (name == "data_sha256") run.data_sha256 = value;
    if (name == "model_sha256") run.model_sha256 = value;
    if (name == "weights_sha256") run.weights_sha256 = value;
    if (name == "code_path") run.device = device_of(value);
    if (name == "incomplete") run.lost = parts_lost(value);
  }
  run.metrics = read_metrics(directory / "metrics.json", ExitCode::model);
  run.is_mixed = run.metrics.contains("eval_mix_model");
  // Older versions only warned of a failure and wrote no "incomplete".
  const bool has_ngrams = run.metrics.contains("baseline_ngram_runtime");
  if (wants_mix(run) && !has_ngrams && run.lost.empty()) run.lost = "ngrams";
  return run;
}

using Changed = std::vector<std::pair<std::string, std::string>>;

Changed changed_from(const std::map<std::string, std::string>& defaults, const RunRecord& run) {
  Changed changed;
  for (const std::string& name : all_option_names()) {
    const std::string& value = run.option(name);
    if (has_effect(run, name) && value != defaults.at(name)) changed.emplace_back(name, value);
  }
  return changed;
}

}  // namespace

bool has_effect(const RunRecord& run, const std::string& name) {
  if (run.option("recipe") != kQuickWord) return true;
  bool is_recipes = name == "micro-batch-tokens";
  TrainOptions any;
  for_each_recipe_option(any, [&](std::string_view own, auto&) { is_recipes |= own == name; });
  return !is_recipes;
}

std::vector<std::pair<std::string, std::string>> changed_options(const RunRecord& run) {
  return changed_from(default_words(), run);
}

std::vector<std::pair<std::string, std::string>> changed_options(const fs::path& config) {
  const std::map<std::string, std::string> defaults = default_words();
  RunRecord run;
  run.options = defaults;
  read_options(config, run);
  Changed changed = changed_from(defaults, run);
  for (const auto& [name, value] : run.options) {
    if (!defaults.contains(name)) changed.emplace_back(name, value);
  }
  return changed;
}

std::vector<RunRecord> read_runs(const std::vector<fs::path>& directories) {
  std::vector<RunRecord> runs;
  for (const fs::path& directory : directories) runs.push_back(read_run(directory));
  return runs;
}

std::string lost_parts(const fs::path& directory) try {
  return read_run(directory).lost;
} catch (const Error&) {
  return "";
}

}  // namespace finetune
