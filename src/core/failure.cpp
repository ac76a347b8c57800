// Exceptions of the standard library as errors of ours, with the exit codes they end with.
#include "core/failure.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/files/file_kind.h"

namespace finetune {
namespace {

// A thread that cannot be started is EAGAIN, whether memory or a limit forbids it.
bool lacks_memory(const std::error_code& code) {
  return code == std::errc::not_enough_memory || code == std::errc::resource_unavailable_try_again;
}

}  // namespace

Error error_of(const std::exception& failure, std::string_view advice) {
  if (auto error = dynamic_cast<const Error*>(&failure)) return *error;
  // A size that no container can have is one that no memory can hold.
  if (dynamic_cast<const std::bad_alloc*>(&failure) ||
      dynamic_cast<const std::length_error*>(&failure)) {
    return device_error("out of memory", advice);
  }
  if (auto error = dynamic_cast<const std::system_error*>(&failure);
      error && lacks_memory(error->code())) {
    return device_error("out of memory or threads: ", failure.what(), advice);
  }
  if (auto error = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    return model_error(printable_path(error->path1()), ": ", error->code().message());
  }
  return internal_error(failure.what());
}

}  // namespace finetune
