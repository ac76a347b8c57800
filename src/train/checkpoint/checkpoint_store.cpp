// Finds, chooses and prunes the checkpoints in a run's directory.
#include "train/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/files/directory_replacement.h"
#include "core/files/files.h"
#include "core/files/temporary_name.h"
#include "core/log.h"

namespace finetune {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".h5";
constexpr size_t kDigits = 8;

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  if (name.size() < kPrefix.size() + kDigits + kSuffix.size()) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  if (name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return parse_int(name);
}

bool is_abandoned_temporary(std::string_view name) {
  const std::string_view target = without_temporary_suffix(name);
  return target.size() != name.size() && step_of(target).has_value();
}

}  // namespace

fs::path checkpoint_path(const fs::path& directory, int64_t step) {
  std::string digits = concat(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return directory / concat(kPrefix, digits, kSuffix);
}

std::vector<CheckpointFile> find_checkpoints(const fs::path& directory) {
  std::vector<CheckpointFile> files;
  for (const fs::path& path : entries_of(directory)) {
    if (auto step = step_of(path.filename().string())) files.push_back({*step, path});
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return files;
}

std::optional<FoundCheckpoint> newest_valid_checkpoint(const fs::path& directory) {
  std::vector<CheckpointFile> files = find_checkpoints(directory);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    try {
      FoundCheckpoint found{*file, read_checkpoint_state(file->path)};
      if (found.state.step == file->step) return found;
      warn(file->path.string(), ": is the checkpoint of step ", found.state.step,
           " under another name; refused");
    } catch (const Error& error) {
      if (error.code() == ExitCode::device) throw;  // memory or threads: not the fault of the file
      warn(error.what(), "; refused");
    }
  }
  return std::nullopt;
}

void prune_checkpoints(const fs::path& directory, int64_t current, int64_t keep,
                       int64_t best_step) try {
  std::vector<CheckpointFile> files = find_checkpoints(directory);
  int64_t up_to_current = std::count_if(files.begin(), files.end(),
                                        [&](const auto& file) { return file.step <= current; });
  int64_t excess = up_to_current - std::max<int64_t>(keep, 1);
  std::error_code ignored;  // a file that cannot be removed does not stop training
  for (const auto& file : files) {
    bool old = excess-- > 0 && file.step < current;
    bool refused = file.step > current;
    if ((old && file.step != best_step) || refused) fs::remove(file.path, ignored);
  }
  for (const fs::path& path : entries_of(directory)) {
    if (is_abandoned_temporary(path.filename().string())) fs::remove(path, ignored);
  }
} catch (const Error&) {
  // A directory that cannot be listed now is pruned after the next checkpoint.
}

}  // namespace finetune
