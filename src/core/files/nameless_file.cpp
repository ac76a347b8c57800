// Creates an unnamed file if the file system can, else a file whose name is removed at once.
#include "core/files/nameless_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"

namespace finetune {

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
  throw model_error(temporary_directory(), ": ", what_,
                    " cannot be written: ", std::strerror(errno),
                    " (TMPDIR names another directory)");
}

}  // namespace finetune
