// Errors of one process end the command in all of them, and one of them says why.
#pragma once

#include <exception>
#include <utility>

#include "comm/communicator.h"
#include "core/error.h"

namespace finetune {

// Thrown where another process tells the user what went wrong: this one ends in silence. Not a
// std::exception, so that nobody takes it for an error to report.
struct PeerFailed {
  ExitCode code;
};

// Thrown where this process is the one to tell: all have agreed on it and end in good order, each
// with this exit code.
class AgreedError : public Error {
 public:
  using Error::Error;
};

namespace detail {
// Of all processes, collective: throws in all of them if one has failed.
void agree(Communicator& communicator, const std::exception_ptr& failure);
}  // namespace detail

// action() in every process, collective. If it throws in one, every process throws: the one of
// lowest rank that failed its own error, with its name before the message (unless all have failed
// with that same message), the others PeerFailed. action() must not leave others waiting for it in
// a collective when it throws. Solo: as if action() were called.
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
