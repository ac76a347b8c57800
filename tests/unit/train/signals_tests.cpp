// Signals during matrix products do no harm.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "core/threads/parallel.h"
#include "ops/cpu/gemm/gemm.h"
#include "train/signals.h"

using namespace finetune;

namespace {

// Sends `number` to this process every half millisecond.
class SignalRain {
 public:
  explicit SignalRain(int number) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0);
    itimerspec period{{0, 500'000}, {0, 500'000}};
    REQUIRE(timer_settime(timer_, 0, &period, nullptr) == 0);
  }
  ~SignalRain() { timer_delete(timer_); }

 private:
  timer_t timer_{};
};

// Products with known results; the heap is used in between, so that damage is visible.
int wrong_products(int count) {
  const std::vector<int64_t> sizes{17, 24, 63, 64, 100, 130, 192, 256};
  std::vector<float> ones(256 * 256, 1.0f), c(256 * 256);
  int wrong = 0;
  uint32_t random = 1;
  const auto draw = [&] { return sizes[(random = random * 1664525 + 1013904223) >> 29]; };
  for (int i = 0; i < count; ++i) {
    const int64_t m = draw(), n = draw(), k = draw();
    const bool transpose_a = i % 3 == 0, transpose_b = i % 3 == 1;
    auto filler = std::make_unique<char[]>(1000 + size_t(random % 9000));
    std::fill(c.begin(), c.end(), 1.0f);
    cpu::fp32_gemm({.a = transpose_a ? matrix(ones.data(), k, m) : matrix(ones.data(), m, k),
                    .transpose_a = transpose_a,
                    .b = transpose_b ? matrix(ones.data(), n, k) : matrix(ones.data(), k, n),
                    .transpose_b = transpose_b,
                    .c = matrix(c.data(), m, n),
                    .accumulate = true});
    for (int64_t j = 0; j < m * n; ++j) wrong += c[size_t(j)] != float(k + 1);
  }
  return wrong;
}

}  // namespace

TEST_CASE("signals in the middle of matrix products harm nothing") {
  const pid_t child = fork();
  if (child == 0) {
    for (int number : {SIGSEGV, SIGABRT, SIGBUS}) ::signal(number, SIG_DFL);
    set_threads(1);
    SignalGuard guard;
    SignalRain rain(SIGUSR1);
    const int wrong = wrong_products(20'000);
    _exit(guard.request() == StopRequest::checkpointed ? (wrong != 0) : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("threads of the pool take no signals") {
  set_threads(3);
  const pid_t self = getpid();
  parallel_for(64, [&](int64_t) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    CHECK(sigismember(&blocked, SIGINT) == int(gettid() != self));
  });
  set_threads(available_cores());
}
