// A library to preload in which the time of day jumps: CLOCK_REALTIME, time() and gettimeofday().
//   JUMP_SECONDS    by how much, also negative
//   JUMP_AFTER      milliseconds after the start from which on it has jumped; 0: from the first look
//   JUMP_ONLY       NAME=VALUE: only in processes that have this in their environment
// The clock that only runs on (CLOCK_MONOTONIC) is as it is.
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long seconds, after;
static struct timespec start;

static bool is_meant(void) {
  const char *only = getenv("JUMP_ONLY"), *equals = only ? strchr(only, '=') : NULL;
  if (!equals) return true;
  char name[64] = "";
  if ((size_t)(equals - only) >= sizeof name) return false;
  memcpy(name, only, (size_t)(equals - only));
  const char* value = getenv(name);
  return value && strcmp(value, equals + 1) == 0;
}

static void look(clockid_t clock, struct timespec* t) {
  syscall(SYS_clock_gettime, clock, t);
}

__attribute__((constructor)) static void read_plan(void) {
  const char *by = getenv("JUMP_SECONDS"), *from = getenv("JUMP_AFTER");
  if (!by || !is_meant()) return;
  seconds = atol(by);
  after = from ? atol(from) : 0;
  look(CLOCK_MONOTONIC, &start);
}

static long jumped_by(void) {
  struct timespec now;
  if (seconds == 0) return 0;
  look(CLOCK_MONOTONIC, &now);
  const long passed = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
  return passed >= after ? seconds : 0;
}

int clock_gettime(clockid_t clock, struct timespec* t) {
  const int result = (int)syscall(SYS_clock_gettime, clock, t);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    t->tv_sec += jumped_by();
  }
  return result;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* t, void* zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
