// Liveness of a run's processes: a death or a hang ends the job, so that no process waits forever.
// A thread detects the death of a process of this host, and waits have a limit. The job ends with
// one line that names the process to blame.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/host/control_block.h"
#include "core/threads/spin.h"

namespace finetune {

class Liveness {
 public:
  // names: the processes of this host, such as "rank 3 on node7".
  Liveness(Control control, int local_rank, int host, std::vector<std::string> names);
  ~Liveness();
  Liveness(const Liveness&) = delete;

  void set_timeout(double seconds) { timeout_ = seconds; }
  void set_patient(bool patient) { patient_ = patient; }     // communicator.h
  void set_remedy(const char* remedy) { remedy_ = remedy; }  // communicator.h
  void note(const char* phase, int64_t step);
  void waits_in(const char* what);  // communicator.h
  bool claim_error_report();
  std::string stopped() const;  // communicator.h

  // Ends all processes of the job; call after the error is reported. From the main thread through
  // MPI, so that other hosts end too.
  [[noreturn]] void end(int code);
  // Returns at once unless another process is ending the job.
  void leave_if_ending() const;

  // For a run on several hosts. duty: called at every check of a wait. may_report: decides which of
  // the processes that are about to end the job reports.
  void set_other_hosts(std::function<void()> duty, std::function<bool()> may_report) {
    duty_ = std::move(duty);
    may_report_ = std::move(may_report);
  }

  // The name of a process of this host, by its local rank in the run.
  const std::string& name(int local_rank) const { return names_[size_t(local_rank)]; }
  const ProcessSlot& slot(int local_rank) const { return control_.slot(local_rank); }
  const std::string& own_name() const { return name(local_rank_); }

  void mark_finished();  // no process waits for this one any more
  void stop();           // stops the watching thread

 private:
  friend class Wait;
  class CallTimer;

  void watch();
  [[noreturn]] void report_death(int local_rank);
  [[noreturn]] void give_up(const std::string& line);
  // The same if the process to blame is on another host. Other hosts may be about to report it too.
  [[noreturn]] void give_up_on_host(const std::string& line);
  bool end_comes_within(double seconds) const;
  uint64_t waits_of_host() const;               // count of waits begun and ended
  std::string pending_of_others(int of) const;  // "; rank 4 on node7 is waiting for ...", or ""

  Control control_;
  int local_rank_;
  int host_;
  std::vector<std::string> names_;
  std::atomic<double> timeout_{600};
  std::atomic<bool> patient_{false};
  std::atomic<const char*> remedy_{nullptr};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ending_here_{false};
  const char* last_phase_ = nullptr;
  std::function<void()> duty_ = [] {};
  std::function<bool()> may_report_ = [] { return true; };
  std::atomic<const char*> call_{nullptr};  // the library call that the main thread is in
  std::atomic<uint64_t> calls_{0};          // count of calls
  std::thread thread_;
};

// The processes that a wait depends on, and how to describe them.
struct Awaited {
  // Returns whether the process in this slot has not yet arrived.
  using Late = std::function<bool(const ProcessSlot&)>;

  std::span<const int> processes;  // of this host, possibly late: local ranks in the run
  Late late;
  double beyond;  // seconds after the limit in which another process may report a better cause
  std::function<std::string()> somebody;  // "rank 2 on node7", named in the error
  // For a link: "is waiting for activations of micro-batch 3 from it". Empty for a collective.
  std::string pending;
  // Called after the time limit: whether somebody() is known to be waiting itself.
  std::function<bool()> excused = [] { return false; };
};

// Measures how long one process of this host has been stopped; call look() often.
class StoppedTime {
 public:
  explicit StoppedTime(const Control& control, int own) : control_(control), own_(own) {}

  // Returns the local rank of a process that has been stopped for `seconds`, or -1.
  int look(double seconds);

 private:
  int first_stopped() const;

  const Control& control_;
  int own_, stopped_ = -1;
  double last_look_ = 0;
  WaitingTime time_;
};

// One wait of the main thread, from the end of its spinning. Call look() often while it lasts.
class Wait {
 public:
  Wait(Liveness& liveness, Awaited awaited);
  ~Wait();
  Wait(const Wait&) = delete;

  void look();

 private:
  // "rank 3 on node7 has not responded for 10 s (stopped, in ...); the job ends"
  [[noreturn]] void give_up_on(int local_rank, bool stopped);
  bool is_late(int local_rank) const;
  int late_and_running() const;        // a local rank, or -1
  int stopped(bool late_alone) const;  // the same
  void mark(bool waiting);

  Liveness& liveness_;
  Awaited awaited_;
  uint64_t waits_seen_ = 0;
  WaitingTime waited_;
  WaitingTime running_;  // since a late process is running instead of waiting
  WaitingTime quiet_;    // since a process of this host began or ended a wait
  StoppedTime stopped_;
};

// Writes one whole line to standard error and log.txt.
void report_error(std::string_view line);

}  // namespace finetune
