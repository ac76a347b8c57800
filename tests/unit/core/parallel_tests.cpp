// The thread pool: every task once, exceptions, nested regions.
#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../contains.h"
#include "core/error.h"
#include "core/threads/parallel.h"
#include "error_line.h"

using namespace finetune;

TEST_CASE("every task runs once on any number of threads") {
  for (int count : {1, 2, 3, 8}) {
    set_threads(count);
    CHECK(threads() == count);
    std::vector<std::atomic<int>> runs(1000);
    parallel_for(1000, [&](int64_t i) { ++runs[size_t(i)]; });
    for (const auto& times : runs) REQUIRE(times == 1);
    std::vector<std::atomic<int>> covered(1001);
    parallel_ranges(1001, 64, [&](int64_t begin, int64_t end) {
      CHECK(begin % 64 == 0);
      for (int64_t i = begin; i < end; ++i) ++covered[size_t(i)];
    });
    for (const auto& times : covered) REQUIRE(times == 1);
  }
  parallel_for(0, [](int64_t) { FAIL("no task to run"); });
  set_threads(available_cores());
}

TEST_CASE("the first task's exception is rethrown") {
  for (int count : {1, 2, 4}) {
    set_threads(count);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::string message;
      try {
        parallel_for(100, [](int64_t i) {
          if (i == 13 || i == 40 || i == 99) throw std::runtime_error(std::to_string(i));
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CHECK(message == "13");
    }
  }
  set_threads(available_cores());
}

TEST_CASE("no more threads than can be asked for") {
  set_threads(1 << 20);
  CHECK(threads() == kMostThreads);
  set_threads(available_cores());
}

TEST_CASE("a system that has no more threads") {
  pthread_attr_t usual, huge;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  pthread_attr_init(&huge);
  // more than the address space of 2^47
  REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 46) == 0);
  REQUIRE(pthread_setattr_default_np(&huge) == 0);
  set_threads(64);  // more than exist
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const std::string message =
      test::error_line(ExitCode::device, [] { parallel_for(1000, [](int64_t) {}); });
  REQUIRE(pthread_setattr_default_np(&usual) == 0);
  CHECK(test::contains(message, "of 64 threads"));
  CHECK(test::contains(message, "--threads"));
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(sigismember(&before, SIGINT) == sigismember(&after, SIGINT));
  // Works normally again when threads are available.
  std::atomic<int> runs{0};
  parallel_for(1000, [&](int64_t) { ++runs; });
  CHECK(runs == 1000);
  set_threads(available_cores());
}

namespace {

std::atomic<bool> held{false}, let_go{false};

void hold(int) {
  held = true;
  while (!let_go) ::usleep(1000);
}

}  // namespace

TEST_CASE("a thread that has no core is not waited for") {
  set_threads(2);
  const pthread_t caller = ::pthread_self();
  std::atomic<pthread_t> other{caller};
  std::atomic<int> there{0};
  parallel_for(2, [&](int64_t) {  // tasks that wait for each other, on two threads
    ++there;
    while (there < 2) ::usleep(100);
    if (::pthread_equal(::pthread_self(), caller)) return;
    other = ::pthread_self();
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  });
  REQUIRE(!::pthread_equal(other.load(), caller));
  struct sigaction action = {}, before = {};
  action.sa_handler = hold;
  REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
  REQUIRE(::pthread_kill(other, SIGUSR1) == 0);
  while (!held) ::usleep(100);
  std::thread late([] {  // for a pool that does wait
    for (int i = 0; i < 5000 && !let_go; ++i) ::usleep(1000);
    let_go = true;
  });
  std::vector<std::atomic<int>> runs(100);
  for (int repeat = 0; repeat < 10; ++repeat) {
    parallel_for(100, [&](int64_t i) { ++runs[size_t(i)]; });
  }
  CHECK(!let_go);
  for (const auto& times : runs) CHECK(times == 10);
  let_go = true;
  late.join();
  // The thread takes part again.
  there = 0;
  parallel_for(2, [&](int64_t) {
    ++there;
    while (there < 2) ::usleep(100);
  });
  stop_threads();
  REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);
  set_threads(available_cores());
}

TEST_CASE("regions that follow each other closely keep their tasks apart") {
  set_threads(4);
  for (int64_t region = 0; region < 20000; ++region) {
    std::atomic<int64_t> sum{0};
    const int64_t count = 1 + region % 7;
    parallel_for(count, [&](int64_t i) { sum += region + i; });
    REQUIRE(sum == count * region + count * (count - 1) / 2);
  }
  set_threads(available_cores());
}

TEST_CASE("a parallel_for inside a task runs on that task's thread") {
  set_threads(4);
  std::vector<std::atomic<int>> runs(64);
  parallel_for(8,
               [&](int64_t i) { parallel_for(8, [&](int64_t j) { ++runs[size_t(8 * i + j)]; }); });
  for (const auto& times : runs) CHECK(times == 1);
  set_threads(available_cores());
}

TEST_CASE("stopped threads are started again, in a fork too") {
  const auto sum_of_tasks = [] {
    std::atomic<int64_t> sum{0};
    parallel_for(100, [&](int64_t i) { sum += i; });
    return sum.load();
  };
  set_threads(3);
  CHECK(sum_of_tasks() == 4950);
  stop_threads();
  stop_threads();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(sum_of_tasks() == 4950 ? 0 : 1);  // hangs if it waits for threads
  CHECK(sum_of_tasks() == 4950);
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
