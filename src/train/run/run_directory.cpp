// Checks, clears and locks a run's output directory, and names the files in it.
#include "train/run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/files/directory_replacement.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/files/temporary_name.h"
#include "engine/export_model.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/record/event_file.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr std::string_view kMarker = "# finetune ";

// All names that a run gives to files in its directory. --overwrite removes only these files,
// checkpoints and the exported files in model/.
constexpr std::array kRunFiles{"config.toml",     "run.json", "metrics.jsonl", "metrics.csv",
                               "evaluations.csv", "log.txt",  "layout.json"};
bool is_run_file(std::string_view name) {
  return is_evaluation_file(name) || is_event_file(name) ||
         std::find(kRunFiles.begin(), kRunFiles.end(), name) != kRunFiles.end();
}

// The final name of `path`, even if its writer was killed and it still has the temporary name.
std::string target_name(const fs::path& path) {
  return std::string(without_temporary_suffix(path.filename().string()));
}

bool is_temporary(const fs::path& path) {
  return target_name(path) != path.filename();
}

bool is_link_free_directory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error));
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw system_failure(path, error.value(), ExitCode::model, "cannot be removed: ");
}

// Removes what an export wrote, then the directory itself if it is empty. If `directory` is a link,
// removes only the link.
void remove_model(const fs::path& directory) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(directory, error))) return remove_file(directory);
  const bool keeps_card = !card_of_user(directory).empty();
  for (const auto& entry : entries_of(directory)) {
    if (keeps_card && entry.filename() == kModelCardFile) continue;
    if (is_exported_name(target_name(entry)) && !is_link_free_directory(entry)) remove_file(entry);
  }
  std::error_code not_empty;
  fs::remove(directory, not_empty);
}

void remove_checkpoints(const fs::path& directory) {
  for (const auto& file : find_checkpoints(directory)) remove_file(file.path);
  std::error_code not_empty;
  fs::remove(directory, not_empty);
}

// An export that was killed half-way; older versions put the process id into its name.
bool is_abandoned_export(const fs::path& path) {
  return is_temporary(path) && target_name(path) == "model" && is_link_free_directory(path);
}

void remove_abandoned(const fs::path& directory) {
  recover_directory(directory / "model", kExportedModel);
  for (const auto& entry : entries_of(directory)) {
    if (is_abandoned_export(entry))
      remove_model(entry);
    else if (is_temporary(entry) && is_run_file(target_name(entry)) &&
             !is_link_free_directory(entry))
      remove_file(entry);
  }
  for (const auto& entry : entries_of(directory / "checkpoints")) {
    if (is_temporary(entry) && target_name(entry).starts_with("step-")) remove_file(entry);
  }
}

void remove_run(const fs::path& directory) {
  // First, since without it the run counts as not ended, whatever remains if this process dies.
  const fs::path end = directory / "metrics.json";
  if (!is_link_free_directory(end)) remove_file(end);
  sync_directory(directory);
  remove_abandoned(directory);
  remove_checkpoints(directory / "checkpoints");
  remove_model(directory / "model");
  // config.toml stays until the new run replaces it: it marks the directory as a run's.
  for (const auto& entry : entries_of(directory)) {
    std::string name = entry.filename().string();
    bool ours = is_run_file(name) && name != "config.toml";
    if (ours && !is_link_free_directory(entry)) remove_file(entry);
  }
}

// Checks before anything slow that a file to append to is a regular file.
void check_appendable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw model_error(path.string(),
                    fs::is_symlink(status) ? ": is a symbolic link" : ": is not a regular file",
                    "; a regular file of the run is needed");
}

// A run that has ended needs no writing.
bool is_only_read(const fs::path& directory, OutputMode mode) {
  return mode == OutputMode::resume && has_ended(directory) &&
         output_state(directory) == OutputState::run;
}

}  // namespace

bool is_name_of_run(std::string_view name) {
  return is_run_file(name) || name == "model" || name == "checkpoints";
}

std::string config_marker(std::string_view version) {
  return concat(kMarker.substr(2), version, ": the options of this run");
}

bool is_config_of_run(std::string_view text) {
  return text.starts_with(kMarker);
}

OutputState output_state(const fs::path& directory) {
  if (is_config_of_run(read_beginning(directory / "config.toml", kMarker.size()))) {
    return OutputState::run;
  }
  const FileKind kind = kind_of(directory, ExitCode::model);
  if (kind != FileKind::directory) {
    std::error_code absent;
    const bool is_link = fs::is_symlink(fs::symlink_status(directory, absent));
    return kind == FileKind::absent && !is_link ? OutputState::absent_or_empty : OutputState::other;
  }
  for (const auto& entry : entries_of(directory)) {
    if (!is_temporary(entry) || target_name(entry) != "config.toml") return OutputState::other;
  }
  return OutputState::absent_or_empty;
}

bool has_ended(const fs::path& directory) {
  return path_exists(directory / "metrics.json", ExitCode::model);
}

void check_output(const fs::path& directory, OutputMode mode) {
  if (!is_only_read(directory, mode)) check_writable(directory);
  OutputState state = output_state(directory);
  if (state == OutputState::absent_or_empty) return;
  if (state == OutputState::other) {
    throw usage_error("--output ", directory.string(),
                      ": is not empty and not a run's directory; choose another");
  }
  if (mode == OutputMode::create) {
    throw usage_error("--output ", directory.string(),
                      ": holds a run already; --resume continues it, --overwrite replaces it");
  }
}

RunDirectory::RunDirectory(const fs::path& directory, OutputMode mode) : path_(directory) {
  check_output(directory, mode);
  finetune::create_directories(directory);
  lock_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) throw system_failure(directory, errno, ExitCode::model);
  try {
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw usage_error("--output ", directory.string(), ": another process is at work there");
    }
    if (mode == OutputMode::overwrite && output_state(directory) == OutputState::run) {
      remove_run(directory);
    } else {
      remove_abandoned(directory);
    }
    for (const fs::path& file : {log(), metrics_log()}) check_appendable(file);
    if (directory_exists(checkpoints(), ExitCode::model) && !is_only_read(directory, mode)) {
      check_writable(checkpoints());
    }
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

void RunDirectory::require_there() const {
  struct stat own {
  }, named{};
  if (::fstat(lock_, &own) == 0 && ::stat(path_.c_str(), &named) == 0 &&
      own.st_dev == named.st_dev && own.st_ino == named.st_ino) {
    return;
  }
  throw model_error(path_.string(),
                    ": is no longer the directory of this run: it was removed, renamed or replaced "
                    "meanwhile; nothing more is written");
}

fs::path RunDirectory::own_checkpoints() const {
  require_there();
  return checkpoints();
}

void RunDirectory::remove_checkpoints() const {
  finetune::remove_checkpoints(own_checkpoints());
}

RunDirectory::~RunDirectory() {
  ::close(lock_);
}

namespace {

constexpr std::array<std::string_view, 9> kEvaluationFiles{
    "predictions.csv", "predictions.json", "nbest_predictions.json",
    "null_odds.json",  "confusion.csv",    "per_class.csv",
    "slices.csv",      "metrics.json",     kEvaluationFacts};

}  // namespace

bool is_evaluation_file(std::string_view name) {
  return std::find(kEvaluationFiles.begin(), kEvaluationFiles.end(), name) !=
         kEvaluationFiles.end();
}

bool is_evaluation(const fs::path& directory) {
  const fs::path file = directory / kEvaluation.last_file;
  if (kind_of(file, ExitCode::model) != FileKind::file) return false;
  const std::string text = read_text_file(file, ExitCode::model);
  try {
    const auto metrics = parse_metrics(text, file, ExitCode::model);
    return std::any_of(metrics.begin(), metrics.end(),
                       [](const auto& metric) { return metric.first.starts_with("eval_"); });
  } catch (const Error&) {  // not a metrics file
    return false;
  }
}

}  // namespace finetune
