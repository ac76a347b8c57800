// Exchanges whole directories, recovers after a kill, and removes files through descriptors.
#include "core/files/directory_replacement.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/files/descriptor.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/temporary_name.h"
#include "core/files/unfinished_files.h"
#include "core/log.h"

namespace finetune {
namespace {

constexpr std::string_view kOldMark = ".old.";  // the old directory, in a step-by-step exchange
constexpr int kAttempts = 100;

// Temporary directories inside a target that was empty: "output.tmp.0123456789abcdef".
fs::path inside(const fs::path& target) {
  return target / "output";
}

// Does not follow links: later work through the descriptor must reach this directory.
int open_lock(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

Descriptor open_directory(const fs::path& path) {
  return Descriptor(open_lock(path));
}

bool is_there(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// Needs no further descriptor, so that a run that has no more of them can still clean up.
std::vector<std::string> entry_names_of(int directory, const fs::path& path) {
  auto fail = [&](int error) { return system_failure(path, error, ExitCode::model); };
  if (::lseek(directory, 0, SEEK_SET) < 0) throw fail(errno);
  std::vector<std::string> names;
  alignas(dirent64) char entries[4096];
  for (;;) {
    const ssize_t size = ::getdents64(directory, entries, sizeof entries);
    if (size < 0) throw fail(errno);
    if (size == 0) return names;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      at += entry->d_reclen;
    }
  }
}

bool is_own_file_in(int directory, const std::string& name, const DirectoryKind& kind) {
  struct stat info {};
  return kind.is_own_file(without_temporary_suffix(name)) &&
         ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         !S_ISDIR(info.st_mode);
}

// Removes the files of this kind from a directory. Moves every other file to `heir` if that exists
// and has no file of the same name; else the file stays.
void put_away(int from, const fs::path& path, const fs::path& heir, const DirectoryKind& kind) {
  const Descriptor into = open_directory(heir);
  try {
    const std::vector<std::string> names = entry_names_of(from, path);
    for (const std::string& name : names) {
      struct stat info {};
      if (is_own_file_in(from, name, kind) || into.number() < 0) continue;
      if (::fstatat(into.number(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) continue;
      ::renameat(from, name.c_str(), into.number(), name.c_str());
    }
    for (const std::string& name : names) {
      if (is_own_file_in(from, name, kind)) ::unlinkat(from, name.c_str(), 0);
    }
  } catch (const Error&) {           // the directory stays; the next writer tries again
  } catch (const std::bad_alloc&) {  // the same: a destructor must not throw
  }
  ::rmdir(path.c_str());
}

Descriptor open_own_directory(const fs::path& path) {
  Descriptor directory = open_directory(path);
  struct stat info {};
  const bool is_own = directory.number() >= 0 && ::fstat(directory.number(), &info) == 0 &&
                      info.st_uid == ::geteuid();
  return is_own ? std::move(directory) : Descriptor();
}

// Locks and returns the directory. Returns nothing if it is another user's or its writer may live.
std::optional<Descriptor> claim_abandoned(const fs::path& path) {
  Descriptor directory = open_own_directory(path);
  if (directory.number() < 0) return std::nullopt;
  if (::flock(directory.number(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  return directory;
}

// Whether the directory was written as one of this kind. An old, complete directory may contain
// other files too.
bool is_of(int directory, const fs::path& path, const DirectoryKind& kind) {
  const std::vector<std::string> names = entry_names_of(directory, path);
  return std::find(names.begin(), names.end(), kind.last_file) != names.end() ||
         std::all_of(names.begin(), names.end(), [&](const std::string& name) {
           return is_own_file_in(directory, name, kind);
         });
}

// Called if a writer was killed while it moved its files into `target`, which was empty before.
// Removes the files moved so far, because a later writer may write other files.
void take_back(const fs::path& target, const fs::path& temporary, const DirectoryKind& kind) {
  if (!is_there(temporary / kind.last_file) || is_there(target / kind.last_file)) return;
  const Descriptor directory = open_directory(target);
  for (const std::string& name : entry_names(target)) {
    if (!is_there(temporary / name) && is_own_file_in(directory.number(), name, kind)) {
      ::unlinkat(directory.number(), name.c_str(), 0);
    }
  }
}

void recover_inside(const fs::path& target, const DirectoryKind& kind) {
  for (const std::string& name : entry_names(target)) {
    if (!is_temporary_of(name, inside(target))) continue;
    const auto directory = claim_abandoned(target / name);
    if (!directory || !is_of(directory->number(), target / name, kind)) continue;
    take_back(target, target / name, kind);
    put_away(directory->number(), target / name, fs::path(), kind);
  }
}

void move(const fs::path& from, const fs::path& to, const fs::path& named) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw write_failure(named, errno);
}

// Returns the old directory's new place.
fs::path exchange(const fs::path& directory, const fs::path& target) {
  if (::renameat2(AT_FDCWD, directory.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    return directory;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    throw model_error(target.string(),
                      ": cannot be exchanged for a new directory: ", std::strerror(errno),
                      "; choose another one");
  }
  return exchange_step_by_step(directory, target);
}

}  // namespace

fs::path exchange_step_by_step(const fs::path& directory, const fs::path& target) {
  const fs::path old = temporary_name(target, kOldMark);
  move(target, old, target);
  try {
    move(directory, target, target);
  } catch (const Error&) {
    ::rename(old.c_str(), target.c_str());
    throw;
  }
  return ::rename(old.c_str(), directory.c_str()) == 0 ? directory : old;
}

fs::path without_trailing_separator(const fs::path& path) {
  fs::path out = path;
  while (out.has_parent_path() && out.parent_path() != out &&
         (!out.has_filename() || out.filename() == ".")) {
    out = out.parent_path();
  }
  return out;
}

std::vector<std::string> entry_names(const fs::path& directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number() < 0) {
    throw system_failure(directory, errno, ExitCode::model);
  }
  return entry_names_of(opened.number(), directory);
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  if (!directory_exists(directory, ExitCode::model)) return entries;
  for (const std::string& name : entry_names(directory)) entries.push_back(directory / name);
  return entries;
}

std::string living_writer(const fs::path& directory) {
  for (const std::string& name : entry_names(directory)) {
    if (is_temporary_of(name, inside(directory)) && !claim_abandoned(directory / name)) return name;
  }
  return "";
}

void recover_directory(const fs::path& path, const DirectoryKind& kind) try {
  const fs::path target = without_trailing_separator(path);
  std::error_code error;
  const fs::path parent = parent_of(target);
  if (!fs::is_directory(parent, error)) return;
  for (const std::string& name : entry_names(parent)) {
    const bool is_old = is_temporary_of(name, target, kOldMark);
    if (!is_old && !is_temporary_of(name, target)) continue;
    if (is_old && !is_there(target) && open_own_directory(parent / name).number() >= 0) {
      ::rename((parent / name).c_str(), target.c_str());
      continue;
    }
    const auto directory = claim_abandoned(parent / name);
    if (directory && is_of(directory->number(), parent / name, kind)) {
      put_away(directory->number(), parent / name, target, kind);
    }
  }
  if (fs::is_directory(target, error)) recover_inside(target, kind);
} catch (const Error&) {
  // A directory that cannot be listed may still be writable.
}

DirectoryReplacement::DirectoryReplacement(const fs::path& target, const DirectoryKind& kind,
                                           bool overwrite)
    : target_(without_trailing_separator(target)), kind_(kind) {
  finetune::create_directories(parent_of(target_));
  recover_directory(target_, kind);
  if (is_there(target_)) {
    way_ = entry_names(target_).empty() ? Way::move_files : Way::exchange;
  }
  if (way_ == Way::exchange && !overwrite) {
    throw usage_error(target_.string(),
                      ": was created while this run was starting; use --overwrite to replace it");
  }
  make_directory();
}

DirectoryReplacement::~DirectoryReplacement() {
  take_unfinished_off(path_.c_str());
  if (!committed_) put_away(lock_, path_, fs::path(), kind_);
  ::close(lock_);
}

void DirectoryReplacement::fail(int error) const {
  throw write_failure(target_, error);
}

std::string DirectoryReplacement::naming_target(std::string message) const {
  const std::string own = path_.string();
  if (const size_t at = message.find(own); at != std::string::npos) {
    message.replace(at, own.size(), target_.string());
  }
  return message;
}

void DirectoryReplacement::make_directory() {
  const fs::path name = way_ == Way::move_files ? inside(target_) : target_;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path_ = temporary_name(name);
    add_unfinished(path_.c_str());  // before it is there: a signal may come at any time
    if (::mkdir(path_.c_str(), 0777) != 0) {
      const int error = errno;
      take_unfinished_off(path_.c_str());
      if (error == EEXIST) continue;
      fail(error);
    }
    int error = 0;  // ENOENT: another writer took it for abandoned before it was locked
    if ((lock_ = open_lock(path_)) < 0)
      error = errno;
    else if (!is_locked())
      error = ENOENT;
    else if (!take_over_mode())
      error = errno;
    if (error == 0) return;
    if (lock_ >= 0) ::close(lock_);
    ::rmdir(path_.c_str());
    take_unfinished_off(path_.c_str());
    if (error != ENOENT) fail(error);
  }
  fail(EEXIST);
}

// Returns false if another process removed it as abandoned. Returns true on file systems without
// locks, where no process removes abandoned directories.
bool DirectoryReplacement::is_locked() const {
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat opened {
  }, named{};
  return ::fstat(lock_, &opened) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Keeps the old directory's permissions, so that private or group-writable directories stay so.
// Returns false if that would grant more rights than before.
bool DirectoryReplacement::take_over_mode() const {
  struct stat old {};
  if (way_ != Way::exchange || ::stat(target_.c_str(), &old) != 0) return true;
  return take_over_rights(lock_, old.st_gid, (old.st_mode & 07777) | S_IRWXU);
}

void DirectoryReplacement::commit() {
  ::fsync(lock_);  // best effort, as for any directory
  // From now on path_ may hold the old directory with other people's files: no signal removes it.
  take_unfinished_off(path_.c_str());
  if (way_ == Way::rename) {
    move(path_, target_, target_);
  } else if (way_ == Way::exchange) {
    return exchange_and_put_away();
  } else {
    move_files();
  }
  committed_ = true;
  sync_directory(way_ == Way::move_files ? target_ : parent_of(target_));
  if (way_ == Way::move_files) ::rmdir(path_.c_str());
}

void DirectoryReplacement::exchange_and_put_away() {
  const Descriptor old = open_directory(target_);
  const bool is_link = old.number() < 0 && (errno == ENOTDIR || errno == ELOOP);
  if (old.number() < 0 && !is_link) fail(errno);
  const fs::path place = exchange(path_, target_);
  committed_ = true;
  sync_directory(parent_of(target_));
  if (is_link)
    ::unlink(place.c_str());  // the link itself, not its target
  else
    put_away(old.number(), place, target_, kind_);
  if (is_there(place)) {
    warn(place.string(), ": what ", target_.string(),
         " was before cannot be removed; the next command that writes there tries again");
  }
}

void DirectoryReplacement::move_files() const {
  std::vector<std::string> names = entry_names_of(lock_, path_);
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name != kind_.last_file; });
  if (entry_names(target_).size() > 1) {
    throw model_error(target_.string(), ": cannot be written: it is no longer empty");
  }
  for (const std::string& name : names) {
    if (::rename((path_ / name).c_str(), (target_ / name).c_str()) == 0) continue;
    const int error = errno;
    for (const std::string& moved : names) {
      if (moved == name) break;
      ::unlink((target_ / moved).c_str());
    }
    fail(error);
  }
}

}  // namespace finetune
