// A directory of files, written beside its target, whose place it takes in one exchange.
// A failure or a kill at any moment leaves the old directory or the new one whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace finetune {

// What the files of a directory are to one another. Directories are emptied by these names alone.
struct DirectoryKind {
  std::string_view name;                       // in messages: "an evaluation"
  bool (*is_own_file)(std::string_view name);  // every name that a writer may give to a file
  std::string_view last_file;                  // moved last: where it is, the others are
  // Has finetune written a directory that holds files of these names and no others?
  bool (*is_ours)(const std::filesystem::path& directory);
};

class DirectoryReplacement {
 public:
  // Makes the directory to write in; what killed writers of `target` have left is removed first. A
  // target that exists and is empty stays the directory it is, for it may be a mount point or have
  // an owner of its own: commit() moves the files into it. Error(model).
  // `overwrite` false: a target with files in it, which has come to be since it was looked at, is
  // an Error(usage).
  DirectoryReplacement(const std::filesystem::path& target, const DirectoryKind& kind,
                       bool overwrite = true);
  ~DirectoryReplacement();  // without commit() nothing is left
  DirectoryReplacement(const DirectoryReplacement&) = delete;
  DirectoryReplacement& operator=(const DirectoryReplacement&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // work(), which writes there. Its errors name the target instead.
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
  // Does commit() replace a directory with files in it?
  bool replaces() const { return way_ == Way::exchange; }
  // What is not of its kind in the old directory is kept, in the new one. Error(model): the target
  // is as it was.
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
  int lock_ = -1;  // a descriptor of path_: others see that its writer lives
  bool committed_ = false;
};

// Removes what killed writers of `target` have left, as far as locks tell that they are dead, and
// gives it back its directory where one was killed in an exchange step by step.
void recover_directory(const std::filesystem::path& target, const DirectoryKind& kind);
// The temporary directory in which another process writes what will be in this one, or "".
std::string living_writer(const std::filesystem::path& directory);

// `path` without slashes and dots at its end, which have no name that could be exchanged.
std::filesystem::path without_trailing_separator(const std::filesystem::path& path);
// Names in a directory, without "." and "..". Error(model).
std::vector<std::string> entry_names(const std::filesystem::path& directory);
// Paths; none of what is no directory. Error(model): nobody can tell what lies there.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);

// For tests: what is done where a file system cannot exchange two names. Returns where the old
// directory lies. Error(model): both are where they were.
std::filesystem::path exchange_step_by_step(const std::filesystem::path& directory,
                                            const std::filesystem::path& target);

}  // namespace finetune
