// Liveness of a run's processes: a death or a hang ends the job, and no process waits for ever.
// A thread sees when a process of this host dies, waiting has a limit, and the job ends with one
// line that names who was to blame.
#pragma once

#include <atomic>
#include <functional>
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
  void note(const char* phase, int64_t step);
  void waits_in(const char* what);  // communicator.h
  bool claim_voice();
  std::string stopped() const;  // communicator.h

  // Ends all processes of the job. A process that has claimed the voice has spoken before. Through
  // MPI from the main thread, so that other hosts end too.
  [[noreturn]] void end(int code);
  // Returns at once unless another process ends the job.
  void leave_if_ending() const;

  void mark_finished();  // nobody waits for this process any more
  void stop();           // the thread that looks at others

 private:
  friend class Wait;
  class CallTimer;

  void watch();
  [[noreturn]] void report_death(int local_rank);
  [[noreturn]] void give_up(const std::string& line);
  bool end_comes_within(double seconds) const;

  Control control_;
  int local_rank_;
  int host_;
  std::vector<std::string> names_;
  std::atomic<double> timeout_{600};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ending_here_{false};
  const char* last_phase_ = nullptr;
  std::atomic<const char*> call_{nullptr};  // that the main thread waits in
  std::atomic<uint64_t> calls_{0};          // so far
  std::thread thread_;
};

// One wait of the main thread, from when it stops spinning. look() often while it lasts.
class Wait {
 public:
  using Late = std::function<bool(const ProcessSlot&)>;  // what this wait is for has not come to it

  // beyond: seconds after the time limit within which a host where somebody is to blame for it may
  // say so; then `somebody` is named: "rank 2 on node7".
  Wait(Liveness& liveness, Late late, double beyond, std::function<std::string()> somebody);
  ~Wait();
  Wait(const Wait&) = delete;

  void look();

 private:
  bool is_late(int local_rank) const;
  int late_and_running() const;  // a local rank, or -1
  int late_and_stopped() const;

  Liveness& liveness_;
  Late late_;
  double beyond_;
  std::function<std::string()> somebody_;
  WaitingTime waited_;
  WaitingTime running_;  // since one of the late does not wait itself
};

// To standard error and log.txt, whole and on one line.
void speak(std::string_view line);

}  // namespace finetune
