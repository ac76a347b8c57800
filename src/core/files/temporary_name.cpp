// Makes random names of temporary files, recognises them, and sets permissions.
#include "core/files/temporary_name.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHexDigits = "0123456789abcdef", kDecimalDigits = "0123456789";
constexpr size_t kRandomDigits = 16;
constexpr size_t kLongestName = 255;

std::string random_digits() {
  uint8_t bytes[kRandomDigits / 2];
  for (size_t filled = 0; filled < sizeof bytes;) {
    const ssize_t count = ::getrandom(bytes + filled, sizeof bytes - filled, 0);
    if (count < 0 && errno != EINTR) {
      throw model_error("a temporary file cannot be named, the system gives no random numbers: ",
                        std::strerror(errno));
    }
    if (count > 0) filled += size_t(count);
  }
  std::string digits;
  for (uint8_t byte : bytes) {
    digits += kHexDigits[byte >> 4];
    digits += kHexDigits[byte & 15];
  }
  return digits;
}

// The target's name, truncated to leave room for the suffix.
std::string stem_of(const fs::path& target, std::string_view mark) {
  return target.filename().string().substr(0, kLongestName - mark.size() - kRandomDigits);
}

bool consists_of(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

}  // namespace

fs::path temporary_name(const fs::path& target, std::string_view mark) {
  return target.parent_path() / concat(stem_of(target, mark), mark, random_digits());
}

bool is_temporary_of(std::string_view name, const fs::path& target, std::string_view mark) {
  const std::string beginning = stem_of(target, mark) + std::string(mark);
  return name.size() == beginning.size() + kRandomDigits && name.starts_with(beginning) &&
         consists_of(name.substr(beginning.size()), kHexDigits);
}

std::string_view without_temporary_suffix(std::string_view name) {
  const size_t at = name.rfind(kTemporaryMark);
  if (at == std::string_view::npos) return name;
  const std::string_view digits = name.substr(at + kTemporaryMark.size());
  const bool random = digits.size() == kRandomDigits && consists_of(digits, kHexDigits);
  return random || consists_of(digits, kDecimalDigits) ? name.substr(0, at) : name;
}

bool take_over_rights(int descriptor, gid_t group, mode_t mode) {
  // If the group cannot be kept, the group's permissions are dropped.
  if (::fchown(descriptor, uid_t(-1), group) != 0) mode &= ~mode_t(S_IRWXG | S_ISGID);
  if (::fchmod(descriptor, mode) == 0) return true;
  const int error = errno;
  struct stat now {};
  const bool is_as_closed =
      ::fstat(descriptor, &now) == 0 && (now.st_mode & ~mode & (S_IRWXG | S_IRWXO)) == 0;
  errno = error;
  return is_as_closed;
}

std::string temporary_directory() {
  const char* directory = ::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

namespace {

// Whether the file system or kernel lacks O_TMPFILE. Other errors would also affect a named file.
bool knows_no_nameless_files(int error) {
  return error == EOPNOTSUPP || error == EISDIR || error == EINVAL || error == ENOSYS ||
         error == ENOENT;
}

Descriptor made() {
  const std::string directory = temporary_directory();
  Descriptor file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
  if (file.number() >= 0 || !knows_no_nameless_files(errno)) return file;
  std::string name = directory + "/finetune-XXXXXX";
  Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.number() >= 0 && ::unlink(name.c_str()) != 0) return Descriptor(-1);
  return named;
}

}  // namespace

NamelessFile::NamelessFile(std::string what) : what_(std::move(what)), file_(made()) {
  if (file_.number() < 0) fail();
}

NamelessFile::NamelessFile(std::string what, int descriptor)
    : what_(std::move(what)), file_(descriptor) {}

void NamelessFile::write(std::string_view bytes) {
  if (!write_all(file_.number(), bytes)) fail();
}

void NamelessFile::fail() const {
  const int error = errno;
  if (is_open_files(error)) {
    throw system_failure(temporary_directory(), error, ExitCode::model,
                         what_ + " cannot be written: ");
  }
  throw Error(code_of_failure(error, ExitCode::model),
              concat(temporary_directory(), ": ", what_, " cannot be written: ",
                     std::strerror(error), " (TMPDIR names another directory)"));
}

}  // namespace finetune
