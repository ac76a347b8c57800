// The liveness thread: detects dead neighbours, applies time limits and ends a job.
#include "comm/liveness.h"

#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>

#include "comm/host/control_block.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/threads/signals_blocked.h"

namespace finetune {
namespace {

constexpr double kInterval = 0.2;  // seconds between checks of the neighbours
constexpr int kNeighbours = 2;     // watched by each process, so that two may die at once
// A launcher that ends a job kills its processes within milliseconds. If this process still lives
// after this time, the neighbour's death had another cause.
constexpr double kSecondLook = 0.1;
constexpr double kOtherHosts = 0.5;  // the first host reports first if the failure is everywhere
constexpr double kLauncher = 3;      // for a launcher to end the job after a death
constexpr double kAbort = 1;         // for a launcher to end the job after MPI_Abort
constexpr double kReport = 2;        // for the reporting process to end the job
// When a library call times out and no process of this host is stopped, the host waits this much
// longer: the process to blame may be on another host, which then reports. Launchers need more than
// a second to end other hosts (SIGTERM first), so hosts report one after another.
constexpr double kBeyondStopped = 3;

bool mpi_is_ours() {
  int initialized = 0, finalized = 0, main_thread = 0;
  MPI_Initialized(&initialized);
  if (!initialized) return false;
  MPI_Finalized(&finalized);
  if (finalized) return false;
  MPI_Is_thread_main(&main_thread);
  return main_thread != 0;
}

// MPI_Abort without its banner. Open MPI 4.1.4 frees the abort message while it is being sent; on a
// busy machine the launcher may then return 1 instead of the code (1 in 300).
void abort_quietly(int code) {
  if (void* quiet = ::dlsym(RTLD_DEFAULT, "orte_execute_quiet")) *static_cast<bool*>(quiet) = true;
  MPI_Abort(MPI_COMM_WORLD, code);
}

}  // namespace

void report_error(std::string_view line) {
  clear_progress();
  const std::string text = concat(line, "\n");
  ssize_t written = ::write(2, text.data(), text.size());
  (void)written;  // nothing can be done about a closed standard error
  log_to_file(line);
}

Liveness::Liveness(Control control, int local_rank, int host, std::vector<std::string> names)
    : control_(std::move(control)), local_rank_(local_rank), host_(host), names_(std::move(names)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { watch(); });
}

Liveness::~Liveness() {
  stop();
}

void Liveness::stop() {
  stopping_ = true;
  futex_wake_all(control_.block().ending);
  if (thread_.joinable()) thread_.join();
}

void Liveness::note(const char* phase, int64_t step) {
  ProcessSlot& slot = control_.slot(local_rank_);
  if (phase == last_phase_) {
    slot.step.store(step, std::memory_order_relaxed);
    return;
  }
  last_phase_ = phase;
  write_phase(slot, phase, step);
}

void Liveness::waits_in(const char* what) {
  if (what) ++calls_;
  call_ = what;
}

bool Liveness::claim_error_report() {
  if (host_ != 0) end_comes_within(kOtherHosts);
  uint32_t nobody = 0;
  return control_.block().error_reporter.compare_exchange_strong(nobody, uint32_t(local_rank_) + 1);
}

std::string Liveness::stopped() const {
  std::string all;
  for (int i = 0; i < control_.processes(); ++i) {
    const ProcessSlot& slot = control_.slot(i);
    if (!process_status(slot.pid).stopped()) continue;
    all += concat(all.empty() ? "; stopped: " : ", ", names_[size_t(i)], " (pid ", slot.pid.load(),
                  ", in ", read_phase(slot), ")");
  }
  return all;
}

bool Liveness::end_comes_within(double seconds) const {
  const std::atomic<uint32_t>& ending = control_.block().ending;
  const double limit = seconds_now() + seconds;
  for (double left; ending.load() == 0 && (left = limit - seconds_now()) > 0;) {
    futex_wait(ending, 0, left);
  }
  return ending.load() != 0;
}

void Liveness::leave_if_ending() const {
  const uint32_t ending = control_.block().ending.load(std::memory_order_relaxed);
  if (ending == 0 || ending_here_) return;
  // The ending process tells the launcher, which ends all hosts at once. Exiting earlier would look
  // like another failure to the launcher, which it handles more slowly.
  ::usleep(useconds_t(kAbort * 1e6));
  ::_exit(int(ending & 0xFF));
}

void Liveness::end(int code) {
  ControlBlock& block = control_.block();
  const uint32_t reporter = block.error_reporter.load();
  if (reporter != 0 && reporter != uint32_t(local_rank_) + 1) end_comes_within(kReport);
  leave_if_ending();
  // The other thread of this process may be here too, and must not exit in the middle of this.
  if (ending_here_.exchange(true)) ::sleep(unsigned(kLauncher));
  uint32_t nobody = 0;
  block.ending.compare_exchange_strong(nobody, kEnding | uint32_t(code & 0xFF));
  futex_wake_all(block.ending);
  if (mpi_is_ours()) abort_quietly(code);
  ::_exit(code);
}

uint64_t Liveness::waits_of_host() const {
  uint64_t all = 0;
  for (int i = 0; i < control_.processes(); ++i) {
    all += control_.slot(i).waits.load(std::memory_order_relaxed);
  }
  return all;
}

std::string Liveness::pending_of_others(int of) const {
  for (int i = 0; i < control_.processes(); ++i) {
    const ProcessSlot& slot = control_.slot(i);
    if (slot.waits_for.load() == of + 1) return concat("; ", name(i), " ", read_pending(slot));
  }
  return {};
}

void Liveness::mark_finished() {
  control_.slot(local_rank_).finished.store(1);
}

// Measures how long the main thread has been in a library call; used by the watching thread.
class Liveness::CallTimer {
 public:
  explicit CallTimer(Liveness& liveness)
      : liveness_(liveness), stopped_(liveness.control_, liveness.local_rank_) {}

  void look() {
    const char* const call = liveness_.call_;
    if (const uint64_t calls = liveness_.calls_; !call || calls != last_call_) {
      last_call_ = calls;
      return waited_.begin_again();
    }
    const double limit = liveness_.timeout_, waited = waited_.look();
    if (limit <= 0 || waited < limit) return;
    if (liveness_.patient_ && stopped_.look(limit) < 0) return;
    const std::string stopped = liveness_.stopped();
    const double beyond = kBeyondStopped * (liveness_.host_ == 0 ? 1 : 2);
    if (stopped.empty() && waited < limit + beyond) return;
    liveness_.give_up(concat("finetune: error: ", liveness_.names_[size_t(liveness_.local_rank_)],
                             " has waited ", limit, " s for other processes (", call, ")", stopped,
                             "; the job ends"));
  }

 private:
  Liveness& liveness_;
  uint64_t last_call_ = 0;
  WaitingTime waited_;
  StoppedTime stopped_;
};

void Liveness::watch() {
  CallTimer timer(*this);
  const int processes = control_.processes();
  const int neighbours = std::min(kNeighbours, processes - 1);
  while (!stopping_) {
    futex_wait(control_.block().ending, 0, kInterval);
    if (stopping_) return;
    leave_if_ending();
    timer.look();
    for (int i = 1; i <= neighbours; ++i) {
      const int other = (local_rank_ + i) % processes;
      const ProcessSlot& slot = control_.slot(other);
      const ProcessStatus status = process_status(slot.pid);
      if (status.alive() && status.start_time == slot.start_time) continue;
      if (slot.finished.load() == 0) report_death(other);
    }
  }
}

void Liveness::report_death(int local_rank) {
  if (end_comes_within(kSecondLook)) leave_if_ending();
  if (claim_error_report()) {
    const ProcessSlot& slot = control_.slot(local_rank);
    const char* remedy = remedy_;
    report_error(concat("finetune: error: ", names_[size_t(local_rank)], " (pid ", slot.pid.load(),
                        ") died in ", read_phase(slot), pending_of_others(local_rank),
                        "; the job ends", remedy ? "; " : "", remedy ? remedy : ""));
  }
  if (end_comes_within(kLauncher)) leave_if_ending();
  end(int(ExitCode::internal));
}

void Liveness::give_up(const std::string& line) {
  if (claim_error_report()) report_error(line);
  end(int(ExitCode::device));
}

void Liveness::give_up_on_host(const std::string& line) {
  if (claim_error_report()) {
    if (may_report_())
      report_error(line);
    else
      end_comes_within(kLauncher);
  }
  end(int(ExitCode::device));
}

int StoppedTime::first_stopped() const {
  for (int i = 0; i < control_.processes(); ++i) {
    if (i != own_ && process_status(control_.slot(i).pid).stopped()) return i;
  }
  return -1;
}

int StoppedTime::look(double seconds) {
  // Reading all pids from /proc is slow, so not at every check of a wait.
  if (const double now = seconds_now(); now - last_look_ >= kInterval) {
    last_look_ = now;
    if (const int stopped = first_stopped(); stopped != stopped_ || stopped < 0) {
      stopped_ = stopped;
      time_.begin_again();
    }
  }
  return stopped_ >= 0 && time_.look() >= seconds ? stopped_ : -1;
}

Wait::Wait(Liveness& liveness, Awaited awaited)
    : liveness_(liveness),
      awaited_(std::move(awaited)),
      stopped_(liveness.control_, liveness.local_rank_) {
  ProcessSlot& slot = liveness_.control_.slot(liveness_.local_rank_);
  if (!awaited_.pending.empty() && !awaited_.processes.empty()) {
    write_pending(slot, awaited_.processes[0], awaited_.pending);
  }
  mark(true);
}

Wait::~Wait() {
  mark(false);
  end_pending(liveness_.control_.slot(liveness_.local_rank_));
}

void Wait::mark(bool waiting) {
  ProcessSlot& slot = liveness_.control_.slot(liveness_.local_rank_);
  slot.waiting.store(waiting ? 1 : 0, std::memory_order_relaxed);
  slot.waits.store(slot.waits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

bool Wait::is_late(int local_rank) const {
  return local_rank != liveness_.local_rank_ && awaited_.late(liveness_.control_.slot(local_rank));
}

int Wait::late_and_running() const {
  for (int i : awaited_.processes) {
    const bool waits = liveness_.control_.slot(i).waiting.load(std::memory_order_relaxed) != 0;
    if (is_late(i) && !waits) return i;
  }
  return -1;
}

int Wait::stopped(bool late_alone) const {
  for (int i : awaited_.processes) {
    if (i == liveness_.local_rank_ || (late_alone && !is_late(i))) continue;
    if (process_status(liveness_.control_.slot(i).pid).stopped()) return i;
  }
  return -1;
}

void Wait::give_up_on(int local_rank, bool stopped) {
  liveness_.give_up(concat("finetune: error: ", liveness_.name(local_rank),
                           " has not responded for ", liveness_.timeout_.load(), " s (",
                           stopped ? "stopped" : "running", ", in ",
                           read_phase(liveness_.control_.slot(local_rank)),
                           liveness_.pending_of_others(local_rank), "); the job ends"));
}

void Wait::look() {
  liveness_.leave_if_ending();
  liveness_.duty_();
  if (liveness_.patient_) {
    const double limit = liveness_.timeout_;
    if (const int stopped = limit > 0 ? stopped_.look(limit) : -1; stopped >= 0) {
      give_up_on(stopped, true);
    }
    return;
  }
  const double limit = liveness_.timeout_, waited = waited_.look();
  // A process that itself waits for another one is not to blame, until that one has arrived.
  const int running = late_and_running();
  if (running < 0) running_.begin_again();
  const double ran = running_.look();
  // A process that began to wait later may know the cause better and reports at its own limit:
  // pipeline stages wait for each other in a chain.
  if (const uint64_t waits = liveness_.waits_of_host(); waits != waits_seen_) {
    waits_seen_ = waits;
    quiet_.begin_again();
  }
  const double quiet = quiet_.look();
  if (limit <= 0 || waited < limit) return;
  // A process may be stopped after it arrived and before it told the others.
  const int stopped = this->stopped(quiet < limit);
  const int late = stopped < 0 && ran >= limit ? running : stopped;
  if (late >= 0) give_up_on(late, late == stopped);
  const double longest = limit + awaited_.beyond;
  const bool others_know = awaited_.excused() || quiet < longest;
  if (others_know && waited < limit + longest) return;
  const std::string pending = awaited_.pending.empty() ? "waits for it" : awaited_.pending + ",";
  const ProcessSlot& own = liveness_.control_.slot(liveness_.local_rank_);
  liveness_.give_up_on_host(concat("finetune: error: ", awaited_.somebody(),
                                   " has not responded for ", limit, " s (", liveness_.own_name(),
                                   " ", pending, " in ", read_phase(own), "); the job ends"));
}

}  // namespace finetune
