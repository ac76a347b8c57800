// Threads. Work is cut by problem size alone, so results do not depend on the number of threads:
// a task is computed by one thread, and the caller combines results in a fixed order.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace finetune {

// The cores that this process may use: affinity mask and cgroup quota, at least 1.
int available_cores();
// The cgroup's quota in cores, rounded up; a large number where there is none.
int quota_cores();

constexpr int64_t kMostThreads = 4096;  // that a user can ask for

void set_threads(int count);  // used by every later parallel_for; at most kMostThreads
int threads();
// Ends the threads of parallel_for until it needs some again: before a fork, which copies none. Not
// while a parallel_for is at work.
void stop_threads();

namespace detail {
void parallel_tasks(int64_t count, void (*run)(void*, int64_t), void* context);
}

// body(i) once for every i in [0, count), in any order, on up to threads() threads. An exception
// in a body is rethrown here (the first by task number). Error(device) if the system has no more
// threads.
template <typename Body>
void parallel_for(int64_t count, Body&& body) {
  detail::parallel_tasks(
      count,
      [](void* context, int64_t i) { (*static_cast<std::remove_reference_t<Body>*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// body(begin, end) over [0, count) cut into pieces of `grain` (the last may be shorter).
template <typename Body>
void parallel_ranges(int64_t count, int64_t grain, Body&& body) {
  parallel_for((count + grain - 1) / grain, [&](int64_t i) {
    int64_t begin = i * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  });
}

}  // namespace finetune
