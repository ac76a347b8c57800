// Blocks signals for a thread.
#pragma once

#include <signal.h>

namespace finetune {

// During its lifetime the calling thread gets no signals. Threads that it creates meanwhile never
// get any. Handlers run on the main thread (train/signals.cpp). The thread's own faults are not
// blocked: a fault in a mapped file is handled (core/files/mapped_file.h), but would be fatal if
// blocked.
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
