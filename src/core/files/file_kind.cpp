// Looks up file kinds without blocking, and opens files so that no pipe can hang.
#include "core/files/file_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/files/path_advice.h"
#include "core/text/printable.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

FileKind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::file;
  if (S_ISDIR(mode)) return FileKind::directory;
  if (S_ISFIFO(mode)) return FileKind::pipe;
  if (S_ISSOCK(mode)) return FileKind::socket;
  return FileKind::device;
}

}  // namespace

bool is_open_files(int error) {
  return error == EMFILE || error == ENFILE;
}

FileKind kind_of(const fs::path& path, ExitCode code) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return kind_of_mode(info.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return FileKind::absent;
  throw system_failure(path, errno, code);
}

bool path_exists(const fs::path& path, ExitCode code) {
  return kind_of(path, code) != FileKind::absent;
}

bool directory_exists(const fs::path& path, ExitCode code) {
  return kind_of(path, code) == FileKind::directory;
}

uint64_t file_bytes(const fs::path& path, ExitCode code) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const int error = errno;
    if (error == ENOENT) refuse_with_advice(path, code);  // a URL
    throw system_failure(path, error, code);
  }
  if (!S_ISREG(info.st_mode)) throw not_a_file(path, info, code);
  return uint64_t(info.st_size);
}

void require_file(const fs::path& path, ExitCode code) {
  file_bytes(path, code);
}

Descriptor open_file(const fs::path& path, ExitCode code) {
  require_file(path, code);  // first, because opening a device may have side effects
  constexpr int kFlags = O_RDONLY | O_NOCTTY | O_CLOEXEC;
  Descriptor file(::open(path.c_str(), kFlags | O_NONBLOCK));
  if (file.number() < 0 && errno == EWOULDBLOCK) {  // a lease holder must give it up
    file = Descriptor(::open(path.c_str(), kFlags));
  }
  struct stat info {};
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0) {
    throw system_failure(path, errno, code);
  }
  if (!S_ISREG(info.st_mode)) throw not_a_file(path, info, code);
  return file;
}

bool is_readable_device(const struct stat& info) {
  if (!S_ISCHR(info.st_mode)) return false;
  if (info.st_rdev == makedev(1, 3)) return true;  // /dev/null
  struct stat input {};
  return ::fstat(STDIN_FILENO, &input) == 0 && S_ISCHR(input.st_mode) &&
         input.st_rdev == info.st_rdev && ::isatty(STDIN_FILENO) == 1;
}

void require_stream(const struct stat& info, const fs::path& path, ExitCode code) {
  if (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || is_readable_device(info)) return;
  throw not_a_file(path, info, code);
}

Error not_a_file(const fs::path& path, const struct stat& info, ExitCode code) {
  const char* kind = S_ISDIR(info.st_mode)    ? "a directory"
                     : S_ISFIFO(info.st_mode) ? "a pipe"
                     : S_ISSOCK(info.st_mode) ? "a socket"
                                              : "a device";
  return Error(code, concat(printable_path(path), ": is ", kind, ", a file is needed"));
}

ExitCode code_of_failure(int error, ExitCode code) {
  if (is_open_files(error) || error == ENOMEM) return ExitCode::device;
  // The disk failed, so the command line is not at fault.
  const bool is_disk = error == EIO || error == ESTALE;
  return code == ExitCode::usage && is_disk ? ExitCode::model : code;
}

Error system_failure(const fs::path& path, int error, ExitCode code, std::string_view what) {
  return Error(code_of_failure(error, code),
               concat(printable_path(path), ": ", what, std::strerror(error),
                      is_open_files(error) ? " (see ulimit -n)" : ""));
}

Error write_failure(const fs::path& path, int error) {
  return system_failure(path, error, ExitCode::model, "cannot be written: ");
}

std::string printable_path(const fs::path& path) {
  constexpr size_t kLongest = 240, kBegin = 100, kEnd = 100;
  std::string_view text = path.native();
  if (text.size() <= kLongest) return printable(text);
  size_t end = text.size() - kEnd;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return concat(printable(text, kBegin), printable(text.substr(end)));
}

}  // namespace finetune
