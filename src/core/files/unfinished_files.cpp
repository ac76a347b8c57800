// Keeps the list in atomic variables, since a signal handler must not lock.
#include "core/files/unfinished_files.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace finetune {
namespace {

std::atomic<const char*> unfinished[16];
static_assert(std::atomic<const char*>::is_always_lock_free);

void exchange(const char* from, const char* to) {
  for (auto& place : unfinished) {
    const char* expected = from;
    if (place.compare_exchange_strong(expected, to)) return;
  }
}

extern "C" void end_without_files(int number) {
  for (const auto& place : unfinished) {
    if (const char* path = place.load()) ::unlink(path);
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

void remove_unfinished_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const bool is_ignored = ::signal(number, end_without_files) == SIG_IGN;
    if (is_ignored) ::signal(number, SIG_IGN);  // by a shell, for its background commands
  }
}

void add_unfinished(const char* path) {
  exchange(nullptr, path);
}

void take_unfinished_off(const char* path) {
  exchange(path, nullptr);
}

}  // namespace finetune
