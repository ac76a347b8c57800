// The rules for directories that may be written or replaced.
#include "core/files/output_directory.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/temporary_name.h"

namespace finetune {
namespace {

// Whether `directory` is `inner` or contains it.
bool holds(const fs::path& directory, const fs::path& inner) {
  return std::mismatch(directory.begin(), directory.end(), inner.begin(), inner.end()).first ==
         directory.end();
}

bool is_home(const fs::path& directory) {
  const char* home = ::getenv("HOME");
  std::error_code error;
  return home && *home && fs::equivalent(directory, home, error);
}

bool is_working_directory(const fs::path& directory) {
  std::error_code error;
  const fs::path current = fs::current_path(error);
  return !error && holds(directory, fs::canonical(current, error));
}

bool is_regular(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error));
}

bool is_mount_point(const fs::path& directory) {
  struct stat own {
  }, parent{};
  return ::stat(directory.c_str(), &own) == 0 && ::stat((directory / "..").c_str(), &parent) == 0 &&
         own.st_dev != parent.st_dev;
}

// Why the place is never an output, whatever it contains; "" if it may be one.
std::string_view protected_place(const fs::path& directory, const std::vector<std::string>& names) {
  if (directory == directory.root_path()) return "the root of the file system";
  if (is_home(directory)) return "your home directory";
  if (is_working_directory(directory)) return "the working directory or holds it";
  if (std::find(names.begin(), names.end(), ".git") != names.end()) return "a repository";
  return "";
}

}  // namespace

void check_writable(const fs::path& directory) {
  fs::path nearest = fs::absolute(directory);
  while (!path_exists(nearest, ExitCode::model) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  if (!directory_exists(nearest, ExitCode::model)) {
    throw model_error(printable_path(directory), ": cannot be created: ", printable_path(nearest),
                      " is not a directory");
  }
  if (::access(nearest.c_str(), W_OK | X_OK) != 0) {
    throw model_error(printable_path(directory), ": cannot be written: ", printable_path(nearest),
                      ": ", std::strerror(errno));
  }
}

void check_replaceable(const fs::path& output, const DirectoryKind& kind) {
  const fs::path target = without_trailing_separator(output);
  auto refuse = [&](const auto&... why) {
    throw usage_error("--output ", printable_path(output), ": ", why...,
                      "; choose another directory");
  };
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (status.type() == fs::file_type::none) {
    throw system_failure(output, error.value(), ExitCode::model, "cannot be read: ");
  }
  if (!fs::is_directory(status)) {
    refuse("is a symbolic link or not a directory; only a directory can be replaced");
  }
  const fs::path directory = fs::canonical(target, error);
  if (error) throw system_failure(output, error.value(), ExitCode::model, "cannot be read: ");
  const std::vector<std::string> names = entry_names(directory);
  if (const auto place = protected_place(directory, names); !place.empty()) {
    refuse("is ", place, ", which is never replaced");
  }
  for (const std::string& name : names) {
    if (kind.is_own_file(without_temporary_suffix(name)) && is_regular(directory / name)) continue;
    refuse("holds ", in_quotes(name), ", which is not a file of ", kind.name);
  }
  if (!kind.is_ours(directory)) refuse("is not ", kind.name);
  if (is_mount_point(directory)) {
    throw usage_error("--output ", printable_path(output),
                      ": is a mount point, which cannot be replaced ",
                      "as one; name a directory in it");
  }
  check_writable(directory.parent_path());
}

void check_output_directory(const fs::path& output, bool overwrite, const DirectoryKind& kind) {
  const fs::path target = without_trailing_separator(output);
  auto refuse = [&](const auto&... why) {
    throw usage_error("--output ", printable_path(output), why...);
  };
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  const FileKind found = kind_of(target, ExitCode::model);
  if (fs::exists(status) && found != FileKind::directory) {
    refuse(fs::is_symlink(status)    ? ": is a symbolic link to no directory"
           : found == FileKind::file ? ": is a file"
                                     : ": is not a directory",
           ", a directory is needed");
  }
  recover_directory(target, kind);
  if (!directory_exists(target, ExitCode::model) || entry_names(target).empty()) {
    return check_writable(target);
  }
  if (const std::string name = living_writer(target); !name.empty()) {
    refuse(": another process is at work there, in ", name, " (if there is none, remove it)");
  }
  if (!overwrite) {
    refuse(": is not empty; choose another directory, or --overwrite to replace ", kind.name);
  }
  check_replaceable(output, kind);
  check_writable(target);
}

void check_inputs_survive(const fs::path& directory, const std::vector<fs::path>& inputs) {
  std::error_code error;
  fs::path output = fs::weakly_canonical(directory, error);
  for (const auto& input : inputs) {
    fs::path inside = fs::weakly_canonical(input, error).lexically_relative(output);
    if (inside.empty() || *inside.begin() == "..") continue;
    throw usage_error("--output ", printable_path(directory), ": --overwrite would remove ",
                      printable_path(input), ", which this run reads");
  }
}

}  // namespace finetune
