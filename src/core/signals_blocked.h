// Signals kept from a thread.
#pragma once

#include <signal.h>

namespace finetune {

// While it lives the calling thread takes no signals, nor do threads that it makes meanwhile, ever:
// handlers belong on the main thread (train/signals.cpp).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace finetune
