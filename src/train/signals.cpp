// Installs signal handlers that set flags, on a stack of their own.
#include "train/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace finetune {
namespace {

constexpr std::array kHandled{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

static_assert(std::atomic<int>::is_always_lock_free);  // safe in a handler
std::atomic<int> requested{0};
std::atomic<int> interrupts{0};

extern "C" void on_signal(int number) {
  if (number == SIGINT && interrupts.fetch_add(1) > 0) _exit(int(ExitCode::interrupted));
  int wanted = int(number == SIGINT ? StopRequest::interrupted : StopRequest::checkpointed);
  int none = 0;
  requested.compare_exchange_strong(none, wanted);
}

}  // namespace

struct SignalGuard::Saved {
  std::array<struct sigaction, kHandled.size()> actions{};
  struct sigaction file_size {
  }, pipe{};
};

SignalGuard::SignalGuard() : saved_(new Saved) {
  requested = 0;
  interrupts = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes in progress continue
  sigemptyset(&action.sa_mask);
  sigset_t handled;  // a parent process may have blocked them
  sigemptyset(&handled);
  for (size_t i = 0; i < kHandled.size(); ++i) {
    ::sigaction(kHandled[i], nullptr, &saved_->actions[i]);
    // A shell ignores SIGINT for a background command: Ctrl-C is for the foreground command.
    const bool stays = kHandled[i] == SIGINT && saved_->actions[i].sa_handler == SIG_IGN;
    if (!stays) ::sigaction(kHandled[i], &action, nullptr);
    sigaddset(&handled, kHandled[i]);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &handled, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, &saved_->file_size);
  ::sigaction(SIGPIPE, &action, &saved_->pipe);
}

SignalGuard::~SignalGuard() {
  for (size_t i = 0; i < kHandled.size(); ++i) {
    ::sigaction(kHandled[i], &saved_->actions[i], nullptr);
  }
  ::sigaction(SIGXFSZ, &saved_->file_size, nullptr);
  ::sigaction(SIGPIPE, &saved_->pipe, nullptr);
  delete saved_;
}

StopRequest SignalGuard::request() const {
  return StopRequest(requested.load());
}

const SignalGuard& signals_of_runs() {
  static const SignalGuard& signals = *new SignalGuard;
  return signals;
}

const char* reason_of_stop(ExitCode code) {
  return code == ExitCode::time_limit    ? "time limit reached"
         : code == ExitCode::interrupted ? "interrupted"
                                         : "asked to stop by a signal";
}

ExitCode exit_code_of(StopRequest request) {
  FINETUNE_CHECK(request != StopRequest::none);
  return ExitCode(int(request));
}

}  // namespace finetune
