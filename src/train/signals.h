// Signals that end a run cleanly. Handlers only set flags; the loop checks them between steps.
// SIGINT            first: stop with a checkpoint, exit 130; second: end at once, exit 130
//   SIGTERM           stop with a checkpoint, exit 85
//   SIGUSR1, SIGUSR2  checkpoint and stop, exit 85 (start again with --resume)
// SIGXFSZ (a file-size limit) and SIGPIPE (the log's reader has ended) are ignored: they become
// ordinary write errors.
#pragma once

#include "core/error.h"

namespace finetune {

enum class StopRequest : int { none = 0, checkpointed = 85, interrupted = 130 };

// Installs the handlers in the constructor and restores the old ones in the destructor. Both must
// be called by the thread that computes; other threads block signals (core/threads/parallel.h).
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The first request since construction. Processes combine their requests by the maximum of the
  // integers: SIGINT wins.
  StopRequest request() const;

 private:
  struct Saved;
  Saved* saved_;
};

// Installed by the first call and kept until the process ends, so that a signal after the last step
// does not make a finished run look failed.
const SignalGuard& signals_of_runs();

// The reason for a run's early end, for the log: "interrupted".
const char* reason_of_stop(ExitCode code);
// The exit code of a run stopped by this request; not for `none`.
ExitCode exit_code_of(StopRequest request);

}  // namespace finetune
