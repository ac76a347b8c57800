// Runs of a sweep in processes of their own, several at a time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "experiments/sweep/sweep.h"

namespace finetune {

// Each process is a fork of this one, so it has the data in memory. It gets a part of this
// process's cores and dies with it. This process must have no threads except those of parallel_for.
class RunProcesses {
 public:
  explicit RunProcesses(int64_t jobs);
  ~RunProcesses();  // kills the processes that still run
  RunProcesses(const RunProcesses&) = delete;
  RunProcesses& operator=(const RunProcesses&) = delete;

  bool full() const;
  bool empty() const;
  // Trains one run and passes its progress to the receiver.
  using Work = std::function<RunReport(const ProgressReceiver&)>;
  // Calls work() in a new process, with all cores or, if `divides_cores`, with a part of them.
  // Error(device): the system has no process for it.
  void start(size_t run, bool divides_cores, const Work& work);
  // Waits for a process to end, and calls look() every few milliseconds. A signal to this process
  // stops all processes, and so does a process that a signal stopped.
  std::pair<size_t, RunReport> wait(const std::function<void()>& look);
  // The runs that have done a step, and their progress.
  std::vector<RunAtWork> at_work() const;

 private:
  struct Process {
    size_t run = 0;
    pid_t pid = 0;  // 0: the place is free
    int result = -1;
    double start = 0;
  };

  // Progress in memory that the processes share. Each value is read and written by itself.
  struct Told {
    std::atomic<int64_t> step{0}, steps{0};
    std::atomic<double> seconds_left{0}, loss{0};
  };

  [[noreturn]] void work_in_child(const Process& process, size_t place, bool divides_cores,
                                  const Work& work);
  RunReport take_result(Process& process, int status) const;
  void stop_all();

  std::vector<Process> processes_;
  Told* told_ = nullptr;  // one per process; null: there is no shared memory
  bool stopped_ = false;
};

}  // namespace finetune
