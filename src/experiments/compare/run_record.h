// A finished run as read from its files: options, facts and metrics.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace finetune {

struct RunRecord {
  std::filesystem::path directory;
  // By name, from config.toml; several values are joined by commas. An option that is missing there
  // has the value that older versions used, or this version's default, which may be empty.
  std::map<std::string, std::string> options;
  std::vector<std::filesystem::path> train_files, eval_files;
  std::vector<std::string> text_columns;
  std::vector<std::pair<std::string, std::string>> facts;  // of run.json, in its order
  std::string data_sha256, model_sha256, weights_sha256;   // empty: not known
  std::map<std::string, double> metrics;

  // Runs with the same options can differ in these:
  bool is_mixed = false;  // its answers are mixed with n-grams
  std::string device;     // the device and code path that computed it; empty: unknown
  std::string lost;       // parts that the options ask for and that failed: "ngrams, calibration"

  const std::string& option(const std::string& name) const { return options.at(name); }
  // Returns the value that had an effect: for ngram-mix yes or no, for device `device`, for
  // "incomplete" `lost`.
  std::string effective(const std::string& name) const {
    if (name == "ngram-mix") return is_mixed ? "yes" : "no";
    if (name == "device" && !device.empty()) return device;
    return name == "incomplete" ? lost : option(name);
  }
};

// Whether the option affects the run: --recipe quick trains only a head and ignores the learning
// rate and batches.
bool has_effect(const RunRecord& run, const std::string& name);

// The run's options that are not at their default, in the order of --help.
std::vector<std::pair<std::string, std::string>> changed_options(const RunRecord& run);
// The same from a config.toml, even of an unfinished run. Keeps options that this version lacks.
std::vector<std::pair<std::string, std::string>> changed_options(
    const std::filesystem::path& config);

// Error(model): a file of a run is missing or damaged, is a link, or is not a regular file.
std::vector<RunRecord> read_runs(const std::vector<std::filesystem::path>& directories);

// Returns RunRecord::lost of a run that has ended; empty if it cannot be read.
std::string lost_parts(const std::filesystem::path& directory);

}  // namespace finetune
