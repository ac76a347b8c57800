// Converts exceptions of the standard library, and failed checks, to an Error with an exit code.
#include "core/failure.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/file_kind.h"

namespace finetune {
namespace {

bool is_code_of(const std::system_error* error, std::errc code) {
  return error && error->code() == code;
}

}  // namespace

std::string start_failure(int error) {
  const std::string text = std::strerror(error);
  if (error == EAGAIN) return text + " (the limit of processes and threads, see ulimit -u)";
  return error == EMFILE ? text + " (see ulimit -n)" : text;
}

Error error_of(const std::exception& failure, std::string_view advice) {
  if (auto error = dynamic_cast<const Error*>(&failure)) return *error;
  // std::length_error means that a container's size exceeds any memory.
  if (dynamic_cast<const std::bad_alloc*>(&failure) ||
      dynamic_cast<const std::length_error*>(&failure)) {
    return device_error("out of memory", advice);
  }
  const auto* of_system = dynamic_cast<const std::system_error*>(&failure);
  if (is_code_of(of_system, std::errc::resource_unavailable_try_again)) {
    return device_error("a thread cannot be started: ", start_failure(EAGAIN));
  }
  if (is_code_of(of_system, std::errc::not_enough_memory)) {
    return device_error("out of memory: ", failure.what(), advice);
  }
  if (auto error = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    return system_failure(error->path1(), error->code().value(), ExitCode::model);
  }
  return internal_error(failure.what());
}

void check_failed(const char* expression, const char* file, int line) {
  throw internal_error("check failed at ", file, ":", line, ": ", expression);
}

}  // namespace finetune
