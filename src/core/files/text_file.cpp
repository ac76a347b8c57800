// Reads whole text files, with a size limit for pipes.
#include "core/files/text_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/files/file_kind.h"
#include "core/files/path_advice.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFileBytes = size_t{1} << 30;
constexpr size_t kMostInputBytes = size_t{64} << 20;

Error too_large(const fs::path& path, size_t most, ExitCode code) {
  return Error(code, concat(printable_path(path), ": holds more than ", most >> 20,
                            " MiB, too much for a file of this kind"));
}

// Reads to the end; Error(code) beyond `most` bytes.
std::string read_to_end(int descriptor, const fs::path& path, size_t expected, size_t most,
                        ExitCode code) {
  if (expected > most) throw too_large(path, most, code);
  std::string text;
  text.reserve(expected);
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(descriptor, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_failure(path, errno, code);
    if (count == 0) return text;
    if (size_t(count) > most - text.size()) throw too_large(path, most, code);
    text.append(block, size_t(count));
  }
}

// Unnamed pipes are in the kernel's own file system; a named pipe is in the one that has its name.
bool is_unnamed_pipe(int descriptor) {
  struct statfs info {};
  return ::fstatfs(descriptor, &info) == 0 && info.f_type == PIPEFS_MAGIC;
}

Descriptor open_connected(const fs::path& path, const struct stat& info, ExitCode code) {
  require_stream(info, path, code);
  Descriptor input(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (input.number() < 0) throw system_failure(path, errno, code);
  if (S_ISFIFO(info.st_mode) && !is_unnamed_pipe(input.number())) {
    throw not_a_file(path, info, code);
  }
  ::fcntl(input.number(), F_SETFL, 0);  // reads block from now on
  return input;
}

std::string read_file_of(const fs::path& path, size_t most, ExitCode code) {
  const Descriptor file = open_file(path, code);
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) throw system_failure(path, errno, code);
  const auto size = size_t(info.st_size);
  std::string text = read_to_end(file.number(), path, size, most, code);
  if (text.size() < size) {
    throw Error(code, concat(printable_path(path), ": became shorter while it was read"));
  }
  return text;
}

// Editors on Windows write the mark before UTF-8.
std::string without_byte_order_mark(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

}  // namespace

std::string read_text_file(const fs::path& path, ExitCode code) {
  return without_byte_order_mark(read_file_of(path, kMostFileBytes, code));
}

std::string read_text_input(const fs::path& path, ExitCode code) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))) {
    return without_byte_order_mark(read_file_of(path, kMostInputBytes, code));
  }
  const Descriptor input = open_connected(path, info, code);
  return without_byte_order_mark(read_to_end(input.number(), path, 0, kMostInputBytes, code));
}

std::map<std::string, std::string> contents_of(const std::vector<fs::path>& files, ExitCode code) {
  std::map<std::string, std::string> texts;
  for (const fs::path& file : files) texts[file.filename().string()] = read_text_file(file, code);
  return texts;
}

std::string read_beginning(const fs::path& path, size_t most, ExitCode code) {
  if (kind_of(path, code) != FileKind::file) return "";
  const Descriptor file = open_file(path, code);
  std::string text(most, '\0');
  for (size_t filled = 0; filled < most;) {
    const ssize_t count =
        ::pread(file.number(), text.data() + filled, most - filled, off_t(filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_failure(path, errno, code);
    if (count == 0) text.resize(most = filled);
    filled += size_t(count);
  }
  return text;
}

void require_readable(const fs::path& path, ExitCode code) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || ::access(path.c_str(), R_OK) != 0) {
    const int error = errno;
    refuse_with_advice(path, code);
    throw system_failure(path, error, code);
  }
  if (S_ISDIR(info.st_mode)) refuse_with_advice(path, code);
  require_stream(info, path, code);
}

}  // namespace finetune
