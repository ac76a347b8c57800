// Errors that end a command: a kind, which is also the exit code, and one line for the user.
//
// Comments name errors as `Error(kind): condition`. "Error(data) if the file is empty" means that
// the function throws an Error with the code ExitCode::data if the file is empty. The message names
// the file and the problem.
#pragma once

#include <stdexcept>
#include <string>

#include "core/text/text.h"

namespace finetune {

// The exit codes of the command line (docs/reference/files.md). Scripts rely on these numbers.
enum class ExitCode : int {
  done = 0,
  internal = 1,
  usage = 2,
  data = 3,
  model = 4,
  device = 5,
  diverged = 6,
  assertion = 7,
  time_limit = 8,
  checkpointed = 85,
  interrupted = 130,
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Each takes the parts of a message: usage_error("--lr ", value, " is negative").
template <typename... Parts>
Error usage_error(const Parts&... parts) {
  return Error(ExitCode::usage, concat(parts...));
}
template <typename... Parts>
Error data_error(const Parts&... parts) {
  return Error(ExitCode::data, concat(parts...));
}
template <typename... Parts>
Error model_error(const Parts&... parts) {
  return Error(ExitCode::model, concat(parts...));
}
template <typename... Parts>
Error device_error(const Parts&... parts) {
  return Error(ExitCode::device, concat(parts...));
}
template <typename... Parts>
Error internal_error(const Parts&... parts) {
  return Error(ExitCode::internal, concat(parts...));
}

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace finetune

// Checks a condition that only a bug of the program can break. Never for errors of users or files.
#define FINETUNE_CHECK(condition) \
  ((condition) ? void(0) : ::finetune::check_failed(#condition, __FILE__, __LINE__))
