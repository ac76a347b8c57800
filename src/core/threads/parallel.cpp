// The thread pool, and the number of cores that the process may use.
#include "core/threads/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/option_advice.h"
#include "core/threads/signals_blocked.h"
#include "core/threads/spin.h"

namespace finetune {
namespace {

int thread_count = 0;

}  // namespace

// cgroup v2 ("max 100000") or v1.
int quota_cores() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) {
    return std::max(1, int(std::stod(quota) / period + 0.999));
  }
  std::ifstream q1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream p1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double q = -1, p = 0;
  if (q1 >> q && p1 >> p && q > 0 && p > 0) return std::max(1, int(q / p + 0.999));
  return std::numeric_limits<int>::max();
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int by_affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(by_affinity, quota_cores()));
}

void set_threads(int count) {
  thread_count = std::clamp(count, 1, int(kMostThreads));
}

int threads() {
  if (thread_count == 0) thread_count = available_cores();
  return thread_count;
}

namespace {

template <typename T>
T wait_while_equal(const std::atomic<T>& word, T old, Spin& spin) {
  T now = old;
  const auto changed = [&] { return (now = word.load(std::memory_order_acquire)) != old; };
  if (spin.until(changed)) return now;
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

thread_local bool inside_region = false;

// A pool of threads that share the tasks of one region at a time with the calling thread. The
// caller waits only for threads that have started tasks: a thread without a core, because other
// processes use it for a time slice longer than most regions, is not waited for.
class Pool {
 public:
  ~Pool() { stop(); }

  void stop() {
    publish(kStop);
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  // Returns false if another thread's region is running; the caller then does its tasks alone.
  bool run(int team, int64_t count, void (*task)(void*, int64_t), void* context) {
    std::unique_lock lock(owner_, std::try_to_lock);
    if (!lock) return false;
    while (int(workers_.size()) < team - 1) {
      try {
        add_worker();
      } catch (const std::system_error& error) {
        throw device_error("no more than ", workers_.size() + 1, " of ", team,
                           " threads can be started: ", error.what(),
                           option_advice("; a smaller --threads needs fewer"));
      }
    }
    task_ = task;
    context_ = context;
    count_ = count;
    team_ = team;
    if (stripes_.size() < size_t(team)) stripes_ = std::vector<Stripe>(size_t(team));
    for (int i = 0; i < team; ++i) {
      stripes_[size_t(i)].next.store(count * i / team, std::memory_order_relaxed);
    }
    error_task_ = count;
    error_ = nullptr;
    inside_.store(0, std::memory_order_release);
    publish(uint32_t(team));
    work(0);
    uint32_t inside = inside_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
    while (inside != kClosed) inside = wait_while_equal(inside_, inside, spin_);
    if (error_) std::rethrow_exception(error_);
    return true;
  }

 private:
  static constexpr uint32_t kTeamBits = 13;  // the low bits of region_: its number of threads
  static constexpr uint32_t kStop = (1u << kTeamBits) - 1;
  static_assert(kMostThreads < kStop);
  // bit of inside_: all tasks of the region are taken
  static constexpr uint32_t kClosed = 1u << 31;

  void publish(uint32_t team) {
    uint32_t number = (region_.load(std::memory_order_relaxed) >> kTeamBits) + 1;
    // Sequentially consistent with notify_all's check for sleepers: otherwise the check could come
    // first, and a worker that goes to sleep in between would never be woken.
    region_.store((number << kTeamBits) | team, std::memory_order_seq_cst);
    region_.notify_all();
  }

  void add_worker() {
    uint32_t seen = region_.load(std::memory_order_relaxed);
    int number = int(workers_.size()) + 1;  // the caller is number 0
    const SignalsBlocked blocked;
    workers_.emplace_back([this, seen, number] { serve(seen, number); });
  }

  void serve(uint32_t seen, int number) {
    inside_region = true;
    Spin spin;
    for (;;) {
      seen = wait_while_equal(region_, seen, spin);
      const uint32_t team = seen & kStop;
      if (team == kStop) return;
      if (number >= int(team) || !enter()) continue;  // threads beyond the team must not delay it
      // Works on the currently open region, which may be later than the one it saw.
      if (number < team_) work(number);
      if (inside_.fetch_sub(1, std::memory_order_acq_rel) == kClosed + 1) inside_.notify_one();
    }
  }

  // Enters the open region, if there is one; the region then stays open until the thread leaves.
  bool enter() {
    uint32_t inside = inside_.load(std::memory_order_relaxed);
    while ((inside & kClosed) == 0) {
      if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void work(int number) {
    for (int i = 0; i < team_; ++i) {
      const int stripe = (number + i) % team_;
      const int64_t end = count_ * (stripe + 1) / team_;
      std::atomic<int64_t>& next = stripes_[size_t(stripe)].next;
      if (next.load(std::memory_order_relaxed) >= end) continue;
      for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < end;) {
        perform(task);
      }
    }
  }

  void perform(int64_t task) {
    try {
      task_(context_, task);
    } catch (...) {
      std::lock_guard lock(error_mutex_);
      if (task < error_task_) {
        error_task_ = task;
        error_ = std::current_exception();
      }
    }
  }

  // The next task in one thread's share. A thread that finishes its share takes from the others.
  struct alignas(64) Stripe {
    std::atomic<int64_t> next{0};
  };

  std::mutex owner_;
  std::vector<std::thread> workers_;
  Spin spin_;  // used by the caller
  std::atomic<uint32_t> region_{0};
  std::atomic<uint32_t> inside_{kClosed};  // workers in the region
  std::vector<Stripe> stripes_;
  int team_ = 0;
  void (*task_)(void*, int64_t) = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  std::mutex error_mutex_;
  int64_t error_task_ = 0;
  std::exception_ptr error_;
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

void stop_threads() {
  pool().stop();
}

AloneOnThread::AloneOnThread() : before_(std::exchange(inside_region, true)) {}
AloneOnThread::~AloneOnThread() {
  inside_region = before_;
}

namespace detail {

void parallel_tasks(int64_t count, void (*run)(void*, int64_t), void* context) {
  if (count <= 0) return;
  int team = int(std::min<int64_t>(threads(), count));
  if (team > 1 && !inside_region) {
    inside_region = true;
    struct Leave {
      ~Leave() { inside_region = false; }
    } leave;
    if (pool().run(team, count, run, context)) return;
  }
  std::exception_ptr error;
  for (int64_t i = 0; i < count; ++i) {
    try {
      run(context, i);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace finetune
