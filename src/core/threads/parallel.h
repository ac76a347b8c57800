// Threads. Work is divided by problem size only, so results do not depend on the number of threads:
// one thread computes each task, and the caller combines results in a fixed order.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace finetune {

// The number of cores that this process may use (affinity mask and cgroup quota), at least 1.
int available_cores();
// The cgroup's quota in cores, rounded up; a large number if there is none.
int quota_cores();

constexpr int64_t kMostThreads = 4096;  // the most that --threads accepts

void set_threads(int count);  // used by every later parallel_for; at most kMostThreads
int threads();
// Ends the pool's threads until a parallel_for needs them again. Call before fork(), which does not
// copy threads, and not during a parallel_for.
void stop_threads();

// During its lifetime, parallel_for on this thread does not use the pool's threads.
class AloneOnThread {
 public:
  AloneOnThread();
  ~AloneOnThread();
  AloneOnThread(const AloneOnThread&) = delete;
  AloneOnThread& operator=(const AloneOnThread&) = delete;

 private:
  bool before_;
};

namespace detail {
void parallel_tasks(int64_t count, void (*run)(void*, int64_t), void* context);
}

// Calls body(i) once for every i in [0, count), in any order, on up to threads() threads. Rethrows
// the exception of the first failed task by number. Error(device) if the system has no more
// threads.
template <typename Body>
void parallel_for(int64_t count, Body&& body) {
  detail::parallel_tasks(
      count,
      [](void* context, int64_t i) { (*static_cast<std::remove_reference_t<Body>*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// Calls body(begin, end) over [0, count) in pieces of `grain` (the last may be shorter).
template <typename Body>
void parallel_ranges(int64_t count, int64_t grain, Body&& body) {
  parallel_for((count + grain - 1) / grain, [&](int64_t i) {
    int64_t begin = i * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  });
}

}  // namespace finetune
