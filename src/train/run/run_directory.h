// The directories of runs and evaluations (docs/reference/files.md): who may use them, and where
// files lie.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/files/directory_replacement.h"

namespace finetune {

enum class OutputMode { create, overwrite, resume };

// What lies at --output. A run's directory is recognised by the first line of its config.toml;
// leftovers of a writer killed before that count as nothing.
enum class OutputState { absent_or_empty, run, other };
OutputState output_state(const std::filesystem::path& directory);

// Changes nothing: to be called before anything slow. Error(usage): the directory is not empty and
// `mode` is create; it holds something other than a run and `mode` is overwrite or resume.
// Error(model): it is a file, or nothing can be written there, unless a run that has ended is to be
// resumed.
void check_output(const std::filesystem::path& directory, OutputMode mode);

// Whether the run in the directory has come to its end: it has its metrics. Error(model).
bool has_ended(const std::filesystem::path& directory);

// Whether a run gives this name to a file or folder in its directory.
bool is_name_of_run(std::string_view name);

// First line of config.toml, without "# ": "finetune 0.1.0: the options of this run".
std::string config_marker(std::string_view version);
// Whether a text begins with it, of any version.
bool is_config_of_run(std::string_view text);

class RunDirectory {
 public:
  // To be called once everything that can be refused has been checked. Creates the directory;
  // `overwrite` removes what an earlier run wrote there, by name, and nothing else (config.toml is
  // left for the new one to replace); temporary files of killed writers go in any mode. The caller
  // writes config.toml first. Holds a lock until destruction: Error(usage) if another process is at
  // work there. Error(model) if it cannot be written.
  RunDirectory(const std::filesystem::path& directory, OutputMode mode);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  // Before anything is written by its path: the directory may have been removed or renamed, and
  // another run may be at work where it was. Error(model).
  void require_there() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path facts() const { return path_ / "run.json"; }
  std::filesystem::path metrics_log() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path metrics_table() const { return path_ / "metrics.csv"; }
  std::filesystem::path evaluations_table() const { return path_ / "evaluations.csv"; }
  std::filesystem::path metrics() const { return path_ / "metrics.json"; }  // written last
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  // checkpoints(), to write there: calls require_there() first.
  std::filesystem::path own_checkpoints() const;
  // Deletes the checkpoints of a run that ended or is given up, and the folder if it is then empty.
  // Error(model): a file cannot be deleted.
  void remove_checkpoints() const;
  std::filesystem::path layout() const { return path_ / "layout.json"; }
  std::filesystem::path model() const { return path_ / "model"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

// The file with an evaluation's date, model and data; its values are strings.
inline constexpr std::string_view kEvaluationFacts = "evaluation.json";

// Whether an evaluation (evaluate --output), or a run, may give this name to a file.
bool is_evaluation_file(std::string_view name);
// Whether the directory's metrics.json holds metrics of an evaluation.
bool is_evaluation(const std::filesystem::path& directory);

inline constexpr DirectoryKind kEvaluation{"an evaluation that finetune wrote", is_evaluation_file,
                                           "metrics.json", is_evaluation};

}  // namespace finetune
