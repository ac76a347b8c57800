// A finished run as others are compared with it: its options, facts and metrics.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace finetune {

struct RunRecord {
  std::filesystem::path directory;
  // By name, as config.toml has them; several values are joined by commas. What an older version
  // did not write has the value of what it did, or is empty.
  std::map<std::string, std::string> options;
  std::vector<std::filesystem::path> train_files, eval_files;
  std::vector<std::string> text_columns;
  std::vector<std::pair<std::string, std::string>> facts;  // of run.json, in its order
  std::string data_sha256, model_sha256, weights_sha256;   // empty: not known
  std::map<std::string, double> metrics;

  // The outcome, which the same options do not always have:
  bool is_mixed = false;  // its answers are a mix with n-grams
  std::string device;     // what computed it, as far as its bits follow from that
  std::string lost;       // "ngrams, calibration": parts that the options ask for, and which failed

  const std::string& option(const std::string& name) const { return options.at(name); }
  // As it took part in the result: of ngram-mix yes or no, of device what computed. "incomplete":
  // `lost`.
  std::string effective(const std::string& name) const {
    if (name == "ngram-mix") return is_mixed ? "yes" : "no";
    if (name == "device" && !device.empty()) return device;
    return name == "incomplete" ? lost : option(name);
  }
};

// The run's options that have another value than the default, in the order of --help.
std::vector<std::pair<std::string, std::string>> changed_options(const RunRecord& run);

// Error(model): a file of a run is missing or damaged, is a link, or is not a regular file.
std::vector<RunRecord> read_runs(const std::vector<std::filesystem::path>& directories);

// RunRecord::lost of a run that has ended; empty for one that cannot be read.
std::string lost_parts(const std::filesystem::path& directory);

}  // namespace finetune
