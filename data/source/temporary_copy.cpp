// The nameless file: made, written, opened again by its descriptor.
#include "data/source/temporary_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/files/files.h"
#include "data/input_file.h"

namespace finetune {
namespace {

std::string temporary_name() {
  const char* directory = ::getenv("TMPDIR");
  return concat(directory && *directory ? directory : "/tmp", "/finetune-XXXXXX");
}

}  // namespace

TemporaryCopy::TemporaryCopy(const fs::path& source)
    : source_name_(input_name(source)),
      file_name_(temporary_name()),
      file_(::mkostemp(file_name_.data(), O_CLOEXEC)) {
  if (file_.number() < 0) throw write_failure();
  ::unlink(file_name_.c_str());
}

void TemporaryCopy::write(std::string_view bytes) {
  if (!write_all(file_.number(), bytes)) throw write_failure();
}

fs::path TemporaryCopy::path() const {
  return concat("/proc/self/fd/", file_.number());
}

Error TemporaryCopy::write_failure() const {
  return model_error(file_name_, ": a copy of ", source_name_,
                     " cannot be written: ", std::strerror(errno),
                     " (TMPDIR names another directory)");
}

}  // namespace finetune
