// Signals kept from a thread.
#pragma once

#include <signal.h>

namespace finetune {

// While it lives the calling thread takes no signals, nor do threads that it makes meanwhile, ever:
// handlers belong on the main thread (train/signals.cpp). Its own faults it does take: one in a
// mapped file is no end (core/files/mapping_faults.h), and would be if it were blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace finetune
