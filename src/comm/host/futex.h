// Sleeps until a 32-bit word changes, in memory that several processes map. std::atomic::wait
// cannot do this: it uses futexes private to a process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace finetune {

// Returns when the word is no longer `old`, on a wake-up or a signal, or after `seconds`.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t old, double seconds) {
  timespec limit{};
  limit.tv_sec = time_t(seconds);
  limit.tv_nsec = long((seconds - double(limit.tv_sec)) * 1e9);
  ::syscall(SYS_futex, &word, FUTEX_WAIT, old, &limit, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace finetune
