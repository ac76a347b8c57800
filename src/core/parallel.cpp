#include "core/parallel.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>

namespace finetune {
namespace {

int thread_count = 0;

// cgroup v2 ("max 100000") or v1 quota in cores, rounded up; a large number where there is none.
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

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int by_affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(by_affinity, quota_cores()));
}

void set_threads(int count) { thread_count = std::max(1, count); }

int threads() {
  if (thread_count == 0) thread_count = available_cores();
  return thread_count;
}

namespace detail {

void parallel_tasks(int64_t count, void (*run)(void*, int64_t), void* context) {
  if (count <= 0) return;
  int team = int(std::min<int64_t>(threads(), count));
  if (team == 1 || omp_in_parallel()) {
    for (int64_t i = 0; i < count; ++i) run(context, i);
    return;
  }
  std::exception_ptr error;
  int64_t error_task = count;
  std::mutex mutex;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
  for (int64_t i = 0; i < count; ++i) {
    try {
      run(context, i);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (i < error_task) {
        error_task = i;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace finetune
