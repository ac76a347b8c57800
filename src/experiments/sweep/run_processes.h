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
  // It tells the receiver how far it has come.
  using Work = std::function<RunReport(const ProgressReceiver&)>;
  // Calls work() in a new process. `divides_cores`: it may use its part of them alone.
  // Error(device) if there can be none.
  void start(size_t run, bool divides_cores, const Work& work);
  // Waits for one of them, and calls look() now and then. A signal to this process, or of one that
  // was stopped, stops all.
  std::pair<size_t, RunReport> wait(const std::function<void()>& look);
  // How far the runs have come that have taken a step.
  std::vector<RunAtWork> at_work() const;

 private:
  struct Process {
    size_t run = 0;
    pid_t pid = 0;  // 0: the place is free
    int result = -1;
    double start = 0;
  };

  // In memory that the processes share; each value is written and read by itself.
  struct Told {
    std::atomic<int64_t> step{0}, steps{0};
    std::atomic<double> seconds_left{0}, loss{0};
  };

  [[noreturn]] void work_in_child(const Process& process, size_t place, bool divides_cores,
                                  const Work& work);
  RunReport take_result(Process& process, int status) const;
  void stop_all();

  std::vector<Process> processes_;
  Told* told_ = nullptr;  // one for each of them; null: there is no such memory
  bool stopped_ = false;
};

}  // namespace finetune
