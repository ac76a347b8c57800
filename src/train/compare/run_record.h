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
  std::string data_sha256, model_sha256;                   // empty: not known
  std::map<std::string, double> metrics;

  bool is_mixed = false;  // its answers may be a mix with n-grams, whatever word decided that

  const std::string& option(const std::string& name) const { return options.at(name); }
  // As it took part in the result: of ngram-mix yes or no.
  std::string effective(const std::string& name) const {
    return name == "ngram-mix" ? (is_mixed ? "yes" : "no") : option(name);
  }
};

// The run's options that have another value than the default, in the order of --help.
std::vector<std::pair<std::string, std::string>> changed_options(const RunRecord& run);

// The runs in these directories, in order; of a directory that is no run but holds some, those, by
// name. One that has not come to its end is left out and named in the log. Error(model) for a
// directory that neither is nor holds a run, where no finished run is left, or if a run's files
// cannot be read; Error(usage) if one is given twice.
std::vector<RunRecord> read_runs(const std::vector<std::string>& directories);

}  // namespace finetune
