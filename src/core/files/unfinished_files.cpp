// Keeps the list in atomic variables, since a signal handler must not lock.
#include "core/files/unfinished_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

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

// Calls only what a signal handler may call. `levels`: of directories in it.
void remove_directory(int parent, const char* name, int levels) {
  const int directory = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return;
  alignas(dirent64) char entries[4096];
  for (ssize_t size; (size = ::getdents64(directory, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      const char* inner = entry->d_name;
      const bool is_dots = inner[0] == '.' && (!inner[1] || (inner[1] == '.' && !inner[2]));
      if (!is_dots && ::unlinkat(directory, inner, 0) != 0 && errno == EISDIR && levels > 0) {
        remove_directory(directory, inner, levels - 1);
      }
      at += entry->d_reclen;
    }
  }
  ::close(directory);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

extern "C" void end_without_files(int number) {
  for (const auto& place : unfinished) {
    const char* path = place.load();
    if (path && ::unlink(path) != 0 && errno == EISDIR) remove_directory(AT_FDCWD, path, 1);
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
