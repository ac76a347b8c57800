// Writes a directory of files beside its target, then exchanges the two. If the process fails or is
// killed at any moment, either the old or the new directory is complete.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace finetune {

// Describes the files of a kind of directory. Only files with these names are removed.
struct DirectoryKind {
  std::string_view name;                       // in messages: "an evaluation"
  bool (*is_own_file)(std::string_view name);  // accepts every name that a writer may use
  std::string_view last_file;                  // moved last: if it is there, all others are
  // Whether finetune wrote a directory that contains only files of these names.
  bool (*is_ours)(const std::filesystem::path& directory);
};

class DirectoryReplacement {
 public:
  // Creates the directory to write in, after removing what killed writers of `target` left. An
  // existing empty target stays, because it may be a mount point or have a special owner: commit()
  // moves the files into it. Error(model). Without `overwrite`: Error(usage) if the target has
  // received files since it was checked.
  DirectoryReplacement(const std::filesystem::path& target, const DirectoryKind& kind,
                       bool overwrite = true);
  ~DirectoryReplacement();  // without commit() nothing remains
  DirectoryReplacement(const DirectoryReplacement&) = delete;
  DirectoryReplacement& operator=(const DirectoryReplacement&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Calls work(), which writes to the temporary directory. Errors name the target instead.
  template <typename Work>
  void fill(Work&& work) const {
    try {
      work();
    } catch (const Error& error) {
      const std::string message = naming_target(error.what());
      if (message == error.what()) throw;
      throw Error(error.code(), message);
    }
  }
  // Whether commit() replaces a directory that contains files.
  bool replaces() const { return way_ == Way::exchange; }
  // Files that do not belong to the kind are moved from the old directory to the new one.
  // Error(model): the target is unchanged.
  void commit();

 private:
  enum class Way { rename, exchange, move_files };

  [[noreturn]] void fail(int error) const;
  std::string naming_target(std::string message) const;
  void make_directory();
  bool is_locked() const;
  bool take_over_mode() const;
  void exchange_and_put_away();
  void move_files() const;

  std::filesystem::path target_;
  const DirectoryKind& kind_;
  Way way_ = Way::rename;
  std::filesystem::path path_;
  int lock_ = -1;  // a descriptor of path_; its lock shows that the writer is alive
  bool committed_ = false;
};

// Removes what dead writers of `target` have left, judged by their locks. Restores the directory if
// a writer was killed during a step-by-step exchange.
void recover_directory(const std::filesystem::path& target, const DirectoryKind& kind);
// Returns the temporary directory in which another process writes this directory's next contents,
// or "".
std::string living_writer(const std::filesystem::path& directory);

// `path` without trailing slashes and dots, which cannot be exchanged by name.
std::filesystem::path without_trailing_separator(const std::filesystem::path& path);
// The names in a directory, without "." and "..". Error(model).
std::vector<std::string> entry_names(const std::filesystem::path& directory);
// The paths of the entries; empty if it is not a directory. Error(model) if it cannot be listed.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);

// For tests: the exchange for file systems that cannot swap two names. Returns the old directory's
// new place. Error(model): both are unchanged.
std::filesystem::path exchange_step_by_step(const std::filesystem::path& directory,
                                            const std::filesystem::path& target);

}  // namespace finetune
