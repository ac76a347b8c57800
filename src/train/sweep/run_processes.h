// Runs of a sweep in processes of their own, several at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "train/sweep/sweep.h"

namespace finetune {

// Each process is a fork of this one and finds in its memory what has been read. It has its part of
// the cores that this process may use, and dies with it. This process must have no other threads
// but those of parallel_for.
class RunProcesses {
 public:
  explicit RunProcesses(int64_t jobs);
  ~RunProcesses();  // kills what is still at work
  RunProcesses(const RunProcesses&) = delete;
  RunProcesses& operator=(const RunProcesses&) = delete;

  bool full() const;
  bool empty() const;
  // Calls work() in a new process. `divides_cores`: it may use its part of them alone.
  // Error(device) if there can be none.
  void start(size_t run, bool divides_cores, const std::function<RunReport()>& work);
  // Waits for one of them. A signal to this process, or of one that was stopped, stops all.
  std::pair<size_t, RunReport> wait();

 private:
  struct Process {
    size_t run = 0;
    pid_t pid = 0;  // 0: the place is free
    int result = -1;
    double start = 0;
  };

  [[noreturn]] void work_in_child(const Process& process, size_t place, bool divides_cores,
                                  const std::function<RunReport()>& work);
  RunReport take_result(Process& process, int status) const;
  void stop_all();

  std::vector<Process> processes_;
  bool stopped_ = false;
};

}  // namespace finetune
