// Files written atomically (temporary, fsync, rename), appended to, and free space.
#include "core/files/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/files/descriptor.h"
#include "core/files/file_kind.h"
#include "core/files/temporary_name.h"
#include "core/files/unfinished_files.h"

namespace finetune {
namespace {

constexpr size_t kBufferSize = 1 << 20;
constexpr int kNameAttempts = 100;

// O_EXCL and O_NOFOLLOW ensure that no other process has opened or linked this file.
int create_temporary(const fs::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

// Uses locks of open file descriptions, because HDF5 uses flock() and closes other descriptors of
// the file.
bool lock_whole_file(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_OFD_SETLK, &whole) == 0;
}

// Returns false if another process removed it as abandoned. Returns true on file systems without
// locks, where no process removes abandoned files.
bool stays_locked(int descriptor, const fs::path& path) {
  if (!lock_whole_file(descriptor) && (errno == EAGAIN || errno == EACCES)) return false;
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_link(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

bool is_own_file(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
}

}  // namespace

fs::path parent_of(const fs::path& path) {
  return path.parent_path().empty() ? fs::path(".") : path.parent_path();
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) bytes.remove_prefix(size_t(count));
  }
  return true;
}

AtomicFile::AtomicFile(fs::path path, Existing existing)
    : path_(std::move(path)), existing_(existing) {
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    temporary_ = temporary_name(path_);
    add_unfinished(temporary_.c_str());  // before it is there: a signal may come at any time
    descriptor_ = create_temporary(temporary_);
    const bool is_made = descriptor_ >= 0;
    const bool is_ours = is_made && stays_locked(descriptor_, temporary_);
    if (is_ours && take_over_mode()) return;
    const int error = errno;
    take_unfinished_off(temporary_.c_str());
    if (is_made) {
      ::close(std::exchange(descriptor_, -1));
      ::unlink(temporary_.c_str());
    }
    if (is_made ? is_ours : error != EEXIST) fail(error);
  }
  fail(EEXIST);
}

AtomicFile::~AtomicFile() {
  take_unfinished_off(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
  if (state_ != State::committed) ::unlink(temporary_.c_str());
}

bool AtomicFile::take_over_mode() const {
  struct stat old {};
  if (::lstat(path_.c_str(), &old) != 0 || !S_ISREG(old.st_mode)) return true;
  const mode_t mode = (old.st_mode & 0777) | S_IRUSR | S_IWUSR;
  return take_over_rights(descriptor_, old.st_gid, mode);
}

void AtomicFile::fail(int error) const {
  throw write_failure(path_, error);
}

void AtomicFile::write(const void* data, size_t size) {
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBufferSize) flush_buffer();
}

void AtomicFile::flush_buffer() {
  if (!write_all(descriptor_, buffer_)) fail(errno);
  buffer_.clear();
}

void AtomicFile::complete() {
  if (state_ != State::open) return;
  flush_buffer();
  if (::fsync(descriptor_) != 0) fail(errno);
  // close() may report a failed write, so call it now. A second descriptor keeps the file locked.
  const int lock = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (lock < 0) fail(errno);
  if (::close(std::exchange(descriptor_, lock)) != 0) fail(errno);
  state_ = State::complete;
}

// Renames without replacing. Returns false if the file system cannot do that.
bool AtomicFile::rename_to_nothing() const {
  const char *from = temporary_.c_str(), *to = path_.c_str();
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) {  // NFS: use a hard link, which never replaces a file
    if (::link(from, to) == 0) {
      ::unlink(from);
      return true;
    }
    if (errno != EEXIST) return false;
  }
  if (errno != EEXIST) fail(errno);
  throw usage_error(path_.string(),
                    ": was created while this run was starting; use --overwrite to replace it");
}

void AtomicFile::commit() {
  complete();
  if (existing_ == Existing::replace || !rename_to_nothing()) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  }
  state_ = State::committed;
  sync_directory(parent_of(path_));
}

void remove_abandoned_files(const fs::path& path) {
  std::error_code error;
  for (fs::directory_iterator it(parent_of(path), error), end; !error && it != end;
       it.increment(error)) {
    if (!is_temporary_of(it->path().filename().string(), path)) continue;
    const Descriptor file(::open(it->path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.number() < 0 || !is_own_file(file.number())) continue;
    if (lock_whole_file(file.number())) ::unlink(it->path().c_str());
  }
}

int open_for_appending(const fs::path& path, bool fresh) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  const int error = descriptor < 0 ? errno : 0;
  if (error == ELOOP && is_link(path)) {
    throw model_error(path.string(), ": is a symbolic link, a file of the run itself is needed");
  }
  struct stat info {};
  const bool is_other =
      error == ENXIO || (error == 0 && (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)));
  if (!is_other && error == 0 && (!fresh || ::ftruncate(descriptor, 0) == 0)) return descriptor;
  const int why = error ? error : errno;
  if (descriptor >= 0) ::close(descriptor);
  if (is_other) throw model_error(path.string(), ": cannot be written: is not a file");
  throw write_failure(path, why);
}

void write_file(const fs::path& path, std::string_view text, AtomicFile::Existing existing) {
  AtomicFile file(path, existing);
  file.write(text);
  file.commit();
}

void create_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw system_failure(path, error.value(), ExitCode::model, "cannot be created: ");
}

void sync_directory(const fs::path& directory) {
  const char* name = directory.empty() ? "." : directory.c_str();
  const Descriptor opened(::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number() >= 0) ::fsync(opened.number());
}

void require_free_space(const fs::path& directory, uint64_t bytes, std::string_view what) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return;  // unknown: do not refuse
  uint64_t available = uint64_t(info.f_bavail) * info.f_frsize;
  if (available < bytes) {
    throw model_error(directory.string(), ": ", what, " needs ", (bytes >> 20) + 1,
                      " MiB of disk, ", available >> 20, " MiB are free");
  }
}

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace finetune
