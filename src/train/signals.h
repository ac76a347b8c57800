// Signals that end a run cleanly. Handlers only set flags; the loop asks between steps.
//   SIGINT            first: stop with a checkpoint, exit 130; second: end at once, 130
//   SIGTERM           stop with a checkpoint, exit 85
//   SIGUSR1, SIGUSR2  checkpoint and stop, exit 85 (start again with --resume)
// SIGXFSZ (a file-size limit) and SIGPIPE (nobody reads the log any more) are ignored: they become
// ordinary write errors.
#pragma once

#include "core/error.h"

namespace finetune {

enum class StopRequest : int { none = 0, checkpointed = 85, interrupted = 130 };

// Installs the handlers for its lifetime and puts the old ones back.
// Made and destroyed by the thread that computes; the other threads take no signals
// (core/threads/parallel.h).
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The first request since construction. As an integer it can be combined over processes by
  // maximum: SIGINT wins.
  StopRequest request() const;

 private:
  struct Saved;
  Saved* saved_;
};

// Installed by the first call, and kept until the process ends: a signal that comes after the last
// step must not make a finished run look failed.
const SignalGuard& signals_of_runs();

// Why a run ended early, for the log: "interrupted".
const char* reason_of_stop(ExitCode code);
// The exit code of a run that stopped so; not for `none`.
ExitCode exit_code_of(StopRequest request);

}  // namespace finetune
