// The plan of faults, read from the environment when the library is loaded (fail_call.c):
//
// FAULT_CALLS    families of calls, "write,sync" or "all":
//                  open      open, openat, creat, fopen, opendir, memfd_create
//                  read      read, pread, readv, preadv, fread
//                  write     write, pwrite, writev, pwritev, fflush, sendfile, copy_file_range
//                  close     close, fclose
//                  sync      fsync, fdatasync
//                  rename    rename, renameat, renameat2
//                  mmap      mmap of a file
//                  truncate  ftruncate, truncate, fallocate, posix_fallocate
//                  mkdir     mkdir, mkdirat
//                  unlink    unlink, unlinkat, rmdir, remove
//                  chmod     fchmod
// FAULT_PATH     counts and fails only calls on a path that contains this. Paths are absolute
//                but not resolved: a relative one has its directory before it. A descriptor has
//                the name that /proc/self/fd gives it ("/memfd:NAME (deleted)", "pipe:[7]"). Of
//                a rename either path may match.
// FAULT_NTH      the call that fails, counted from 1 in each process; without it none does
// FAULT_TIMES    how many fail from that one on: 1 without it; 0: all
// FAULT_KIND     how it fails:
//                  EIO, ENOSPC ...  it does nothing and sets errno; but close does close
//                  short            write, read: half of the bytes, rounded up
//                  lost             it says that it succeeded and has done nothing; a read
//                                   finds the end of the file
//                  flip             write, read: one bit in the middle of the data is wrong
//                  kill             the process is killed before the call
//                  stop             the process is stopped before it, until somebody continues it
//                  torn             write: the process is killed after half of the bytes
//                What a call cannot do ("short" of a rename) is EIO.
// FAULT_REPORT   a file to which each call that matches adds a line: process, number, function,
//                path, and after "->" what was done to it. The number of lines is the end of a
//                walk over all n.
// FAULT_ONLY     NAME=VALUE: only processes that have this in their environment, such as one
//                rank of several
#define _GNU_SOURCE
#include "fault_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char* const kFamilies[FAMILIES] = {"open",  "read",   "write", "close",
                                                "sync",  "rename", "mmap",  "truncate",
                                                "mkdir", "unlink", "chmod"};

static const char* const kKinds[] = {"", "", "short", "lost", "flip", "kill", "stop", "torn"};

static const struct {
  const char* name;
  int number;
} kErrors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG},
               {"EINTR", EINTR},   {"EACCES", EACCES}, {"EPERM", EPERM},   {"EROFS", EROFS},
               {"ENOENT", ENOENT}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EBADF", EBADF},
               {"EEXIST", EEXIST}, {"ESTALE", ESTALE}, {"EINVAL", EINVAL}};

static struct {
  bool active;
  bool families[FAMILIES];
  const char *path, *report;
  long first, times;
  enum fault kind;
  int error;
  const char* name;  // of the kind
} plan;
static atomic_long calls;

static void stop_with(const char* variable, const char* value) {
  fprintf(stderr, "fail_call: %s=%s is not understood\n", variable, value);
  _exit(125);
}

static bool only_elsewhere(void) {
  const char *only = getenv("FAULT_ONLY"), *equals = only ? strchr(only, '=') : NULL;
  if (!equals) return false;
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)(equals - only), only);
  const char* value = getenv(name);
  return !value || strcmp(value, equals + 1) != 0;
}

static void read_families(const char* list) {
  char copy[256], *rest = NULL;
  snprintf(copy, sizeof copy, "%s", list);
  for (char* word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    bool known = false;
    for (int i = 0; i < FAMILIES; ++i) {
      if (strcmp(word, kFamilies[i]) != 0 && strcmp(word, "all") != 0) continue;
      plan.families[i] = known = true;
    }
    if (!known) stop_with("FAULT_CALLS", list);
  }
}

static void read_kind(const char* kind) {
  for (int i = SHORT; i <= TORN; ++i) {
    if (strcmp(kind, kKinds[i]) == 0) plan.kind = (enum fault)i;
  }
  for (size_t i = 0; i < sizeof kErrors / sizeof *kErrors; ++i) {
    if (strcmp(kind, kErrors[i].name) != 0) continue;
    plan.kind = ERROR;
    plan.error = kErrors[i].number;
  }
  if (plan.kind == NONE) stop_with("FAULT_KIND", kind);
}

static long number_of(const char* variable, long otherwise) {
  const char* value = getenv(variable);
  if (!value || !*value) return otherwise;
  char* end = NULL;
  const long number = strtol(value, &end, 10);
  if (*end || number < 0) stop_with(variable, value);
  return number;
}

__attribute__((constructor)) static void read_plan(void) {
  const char *families = getenv("FAULT_CALLS"), *kind = getenv("FAULT_KIND");
  if (!families || only_elsewhere()) return;
  plan.error = EIO;
  read_families(families);
  plan.name = kind && *kind ? kind : "EIO";
  read_kind(plan.name);
  plan.path = getenv("FAULT_PATH");
  plan.report = getenv("FAULT_REPORT");
  plan.first = number_of("FAULT_NTH", 0);
  plan.times = number_of("FAULT_TIMES", 1);
  plan.active = true;
}

// By the system's own calls: nothing of this is counted, and no descriptor stays open.
static void report(long number, const char* call, const char* path, enum fault fault) {
  if (!plan.report) return;
  char line[2 * PATH_MAX + 128];
  int size = snprintf(line, sizeof line, "%ld %ld %s %s%s%s\n", (long)getpid(), number, call, path,
                      fault == NONE ? "" : " -> ", fault == NONE ? "" : plan.name);
  if (size >= (int)sizeof line) size = sizeof line - 1;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  const long file = syscall(SYS_openat, AT_FDCWD, plan.report, flags, 0666);
  if (file < 0) return;
  if (syscall(SYS_write, file, line, (size_t)size) < 0) _exit(125);
  syscall(SYS_close, file);
}

void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

bool concerns(enum family family) {
  return plan.active && plan.families[family];
}

// Counts a call and says what is done to it. errno is as before, unless it is to fail.
static enum fault decide(const char* call, const char* path, const char* second_path) {
  const bool matches =
      !plan.path || strstr(path, plan.path) || (second_path && strstr(second_path, plan.path));
  if (!matches) return NONE;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  const bool chosen = plan.first > 0 && number >= plan.first &&
                      (plan.times == 0 || number < plan.first + plan.times);
  const enum fault fault = chosen ? plan.kind : NONE;
  report(number, call, path, fault);
  if (fault == KILL) die();
  if (fault != STOP) return fault;
  syscall(SYS_kill, getpid(), SIGSTOP);
  return NONE;
}

static void absolute(int directory, const char* path, char* out) {
  char link[64];
  out[0] = '\0';
  if (path[0] != '/') {
    if (directory == AT_FDCWD)
      snprintf(link, sizeof link, "/proc/self/cwd");
    else
      snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    const ssize_t length = readlink(link, out, PATH_MAX - 1);
    snprintf(out + (length > 0 ? length : 0), PATH_MAX, "/%s", path);
  } else {
    snprintf(out, PATH_MAX, "%s", path);
  }
}

enum fault on_paths(enum family family, const char* call, int directory, const char* path,
                    int second_directory, const char* second_path) {
  if (!concerns(family) || !path) return NONE;
  const int before = errno;
  char first[2 * PATH_MAX], second[2 * PATH_MAX];
  absolute(directory, path, first);
  if (second_path) absolute(second_directory, second_path, second);
  const enum fault fault = decide(call, first, second_path ? second : NULL);
  errno = before;
  return fault;
}

enum fault on_path(enum family family, const char* call, int directory, const char* path) {
  return on_paths(family, call, directory, path, AT_FDCWD, NULL);
}

enum fault on_descriptor(enum family family, const char* call, int descriptor) {
  if (!concerns(family)) return NONE;
  const int before = errno;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  const enum fault fault = length > 0 ? decide(call, path, NULL) : NONE;
  errno = before;
  return fault;
}

int error_of(enum fault fault) {
  return fault == ERROR ? plan.error : EIO;
}
