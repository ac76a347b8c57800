// Liveness of a run's processes: a death or a hang ends the job, and no process waits for ever.
// A thread sees when a process of this host dies, waiting has a limit, and the job ends with one
// line that names who was to blame.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/host/control_block.h"
#include "core/threads/waiting_time.h"

namespace finetune {

class Liveness {
 public:
  // names: of the processes of this host, "rank 3 on node7".
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

  // Ends all processes of the job. A process that reports an error has done so before. Through
  // MPI from the main thread, so that other hosts end too.
  [[noreturn]] void end(int code);
  // Returns at once unless another process ends the job.
  void leave_if_ending() const;

  // For a run on several hosts. duty: done at every look of a wait. may_report: settles which of
  // the processes that are about to end the job says why.
  void set_other_hosts(std::function<void()> duty, std::function<bool()> may_report) {
    duty_ = std::move(duty);
    may_report_ = std::move(may_report);
  }

  // Of a process of this host, by its local rank in the run.
  const std::string& name(int local_rank) const { return names_[size_t(local_rank)]; }
  const ProcessSlot& slot(int local_rank) const { return control_.slot(local_rank); }
  const std::string& own_name() const { return name(local_rank_); }

  void mark_finished();  // nobody waits for this process any more
  void stop();           // the thread that looks at others

 private:
  friend class Wait;
  class CallTimer;

  void watch();
  [[noreturn]] void report_death(int local_rank);
  [[noreturn]] void give_up(const std::string& line);
  // The same where who is to blame is on another host, as others may have found too.
  [[noreturn]] void give_up_on_host(const std::string& line);
  bool end_comes_within(double seconds) const;
  uint64_t waits_of_host() const;               // begun and ended, so far
  std::string pending_of_others(int of) const;  // "; rank 4 on node7 is waiting for ...", or empty

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
  std::atomic<const char*> call_{nullptr};  // that the main thread waits in
  std::atomic<uint64_t> calls_{0};          // so far
  std::thread thread_;
};

// Whom a wait is for, and what is told of it.
struct Awaited {
  // What this wait is for has not come to it.
  using Late = std::function<bool(const ProcessSlot&)>;

  std::span<const int> processes;  // of this host, that may be late: local ranks in the run
  Late late;
  double beyond;  // seconds after the time limit in which another process may say who is to blame
  std::function<std::string()> somebody;  // "rank 2 on node7", whom to name then
  // Of a link: "is waiting for activations of micro-batch 3 from it". Empty: a collective.
  std::string pending;
  // Asked from the time limit on: whether somebody() is known to wait itself.
  std::function<bool()> excused = [] { return false; };
};

// How long the same process of this host has been stopped, by one who looks often.
class StoppedTime {
 public:
  explicit StoppedTime(const Control& control, int own) : control_(control), own_(own) {}

  // The local rank of one that has been stopped for `seconds`, or -1.
  int look(double seconds);

 private:
  int first_stopped() const;

  const Control& control_;
  int own_, stopped_ = -1;
  double last_look_ = 0;
  WaitingTime time_;
};

// One wait of the main thread, from when it stops spinning. look() often while it lasts.
class Wait {
 public:
  Wait(Liveness& liveness, Awaited awaited);
  ~Wait();
  Wait(const Wait&) = delete;

  void look();

 private:
  // "rank 3 on node7 has not come for 10 s (stopped, in ...); the job ends"
  [[noreturn]] void give_up_on(int local_rank, bool stopped);
  bool is_late(int local_rank) const;
  int late_and_running() const;        // a local rank, or -1
  int stopped(bool late_alone) const;  // the same
  void mark(bool waiting);

  Liveness& liveness_;
  Awaited awaited_;
  uint64_t waits_seen_ = 0;
  WaitingTime waited_;
  WaitingTime running_;  // since one of the late does not wait itself
  WaitingTime quiet_;    // since no process of this host has begun or ended a wait
  StoppedTime stopped_;
};

// To standard error and log.txt, whole and on one line.
void report_error(std::string_view line);

}  // namespace finetune
