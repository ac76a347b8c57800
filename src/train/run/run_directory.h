// The directories of runs and evaluations (docs/reference/files.md): which commands may use them,
// and where their files are.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/files/directory_replacement.h"

namespace finetune {

enum class OutputMode { create, overwrite, resume };

// What the directory --output holds. A run's directory is recognised by the first line of its
// config.toml. What a writer left that was killed before that line does not count.
enum class OutputState { absent_or_empty, run, other };
OutputState output_state(const std::filesystem::path& directory);

// Call this before anything slow; it changes nothing. Error(usage): the directory is not empty and
// `mode` is create, or it holds something other than a run and `mode` is overwrite or resume.
// Error(model): it is a file, or is not writable. Resuming a run that has ended needs no write
// access.
void check_output(const std::filesystem::path& directory, OutputMode mode);

// Whether the run in the directory has ended, that is, has its metrics. Error(model).
bool has_ended(const std::filesystem::path& directory);

// Whether a run gives this name to a file or folder in its directory.
bool is_name_of_run(std::string_view name);

// First line of config.toml, without "# ": "finetune 0.1.0: the options of this run".
std::string config_marker(std::string_view version);
// Whether a text begins with this line, of any version.
bool is_config_of_run(std::string_view text);

class RunDirectory {
 public:
  // Construct this after everything that can be refused has been checked. Creates the directory.
  // `overwrite` removes only the files of an earlier run, by name (the new config.toml replaces the
  // old one). Temporary files of killed writers are removed in any mode. The caller writes
  // config.toml first. Holds a lock until destruction. Error(usage) if another process uses the
  // directory, Error(model) if it is not writable.
  RunDirectory(const std::filesystem::path& directory, OutputMode mode);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  // Call this before writing files by path: the directory may have been removed or renamed, and
  // another run may now use that path. Error(model).
  void require_there() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path facts() const { return path_ / "run.json"; }
  std::filesystem::path metrics_log() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path metrics_table() const { return path_ / "metrics.csv"; }
  std::filesystem::path evaluations_table() const { return path_ / "evaluations.csv"; }
  std::filesystem::path metrics() const { return path_ / "metrics.json"; }  // written last
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  // checkpoints() for writing; calls require_there() first.
  std::filesystem::path own_checkpoints() const;
  // Deletes the checkpoints of a run that has ended or is replaced, and then the folder if it is
  // empty. Error(model): a file cannot be deleted.
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

// Whether an evaluation (evaluate --output) or a run gives this name to a file.
bool is_evaluation_file(std::string_view name);
// Whether the directory's metrics.json holds metrics of an evaluation.
bool is_evaluation(const std::filesystem::path& directory);

inline constexpr DirectoryKind kEvaluation{"an evaluation that finetune wrote", is_evaluation_file,
                                           "metrics.json", is_evaluation};

}  // namespace finetune
