// If one process fails, the command ends in all of them and one of them reports why.
#pragma once

#include <exception>
#include <utility>

#include "comm/communicator.h"
#include "core/error.h"

namespace finetune {

// Thrown in a process whose error another process reports: it ends silently. Not a std::exception,
// so that no handler reports it as an error.
struct PeerFailed {
  ExitCode code;
};

// Thrown in the process that reports. All processes have agreed and end regularly with this exit
// code.
class AgreedError : public Error {
 public:
  using Error::Error;
};

namespace detail {
// Collective over all processes: throws in all of them if one has a failure.
void agree(Communicator& communicator, const std::exception_ptr& failure);
}  // namespace detail

// Collective: calls action() in every process. If it throws in some, every process throws: the
// failed process of lowest rank throws its own error, prefixed with its name (unless all failed
// with the same message); the others throw PeerFailed. action() must not throw while other
// processes wait for it in a collective. With one process it only calls action().
template <typename Action>
void agree_on_errors(Communicator& communicator, Action&& action) {
  if (communicator.size() == 1) {
    std::forward<Action>(action)();
    return;
  }
  std::exception_ptr failure;
  try {
    std::forward<Action>(action)();
  } catch (...) {
    failure = std::current_exception();
  }
  detail::agree(communicator, failure);
}

}  // namespace finetune
