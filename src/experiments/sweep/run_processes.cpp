// Forks, divides the cores, and reads each run's report from an unnamed file.
#include "experiments/sweep/run_processes.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/files/files.h"
#include "core/text/json_value.h"
#include "core/threads/parallel.h"
#include "ops/cuda/host/cuda_backend.h"
#include "train/signals.h"

namespace finetune {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);

std::string text_of(const RunReport& report) {
  JsonObject metrics;
  for (const auto& [name, value] : report.metrics) metrics.add(name, value);
  return JsonObject{{"status", int(report.status)}, {"code", int(report.code)},
                    {"error", report.error},        {"line", report.result_line},
                    {"metrics", metrics},           {"best_metric", report.best_metric},
                    {"seconds", report.seconds},    {"warnings", report.warnings}}
      .text();
}

RunReport report_in(const std::string& text) {
  const JsonValue json = JsonValue::parse(text);
  RunReport report;
  report.status = RunStatus(json["status"].as<int>().value());
  report.code = ExitCode(json["code"].as<int>().value());
  report.error = json["error"].as<std::string>().value();
  report.result_line = json["line"].as<std::string>().value();
  for (const auto& [name, value] : json["metrics"].members()) {
    report.metrics[name] = value.as<double>().value();
  }
  report.best_metric = json["best_metric"].as<std::string>().value();
  report.seconds = json["seconds"].as<double>().value();
  report.warnings = json["warnings"].as<std::vector<std::string>>().value();
  return report;
}

// Binds this process to neighbouring cores of its own, different ones for each place.
void take_part_of_cores(size_t place, size_t jobs) {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  }
  const size_t share = std::max<size_t>(1, size_t(available_cores()) / jobs);
  cpu_set_t own;
  CPU_ZERO(&own);
  for (size_t i = 0; i < share; ++i) CPU_SET(cores[(place * share + i) % cores.size()], &own);
  ::sched_setaffinity(0, sizeof own, &own);  // if this fails, threads only move between cores
}

}  // namespace

RunProcesses::RunProcesses(int64_t jobs) : processes_(size_t(jobs)) {
  void* memory = ::mmap(nullptr, processes_.size() * sizeof(Told), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  told_ = static_cast<Told*>(memory);
  std::uninitialized_default_construct_n(told_, processes_.size());
}

RunProcesses::~RunProcesses() {
  for (const Process& process : processes_) {
    if (process.pid == 0) continue;
    ::kill(process.pid, SIGKILL);
    ::waitpid(process.pid, nullptr, 0);
    ::close(process.result);
  }
  if (told_) ::munmap(told_, processes_.size() * sizeof(Told));
}

bool RunProcesses::full() const {
  return std::none_of(processes_.begin(), processes_.end(),
                      [](const Process& process) { return process.pid == 0; });
}

bool RunProcesses::empty() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.pid == 0; });
}

void RunProcesses::start(size_t run, bool divides_cores, const Work& work) {
  size_t place = 0;
  while (processes_.at(place).pid != 0) ++place;
  Process& process = processes_[place];
  process.run = run;
  process.start = seconds_now();
  if (told_) told_[place].step = 0;
  process.result = ::memfd_create("run", MFD_CLOEXEC);
  if (process.result < 0) throw device_error("memory of a run: ", start_failure(errno));
  std::fflush(nullptr);  // else the child would write buffered text again
  stop_threads();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int error = errno;
    ::close(process.result);
    throw device_error("no process for a run: ", start_failure(error), "; fewer --jobs need fewer");
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(int(ExitCode::internal));
    work_in_child(process, place, divides_cores, work);
  }
  process.pid = pid;
}

void RunProcesses::work_in_child(const Process& process, size_t place, bool divides_cores,
                                 const Work& work) {
  try {
    if (divides_cores) take_part_of_cores(place, processes_.size());
    take_gpus_from(int(place));
    const auto tell = [&](const RunProgress& progress) {
      Told& told = told_[place];
      told.steps = progress.steps;
      told.loss = progress.loss;
      told.seconds_left = progress.seconds_left;
      told.step = progress.step;
    };
    const std::string text = text_of(work(told_ ? ProgressReceiver(tell) : nullptr));
    ::_exit(write_all(process.result, text) ? 0 : int(ExitCode::device));
  } catch (...) {  // work() reports its own errors, so this is lack of memory or a bug
    ::_exit(int(ExitCode::device));
  }
}

RunReport RunProcesses::take_result(Process& process, int status) const {
  RunReport report;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    std::string text(size_t(::lseek(process.result, 0, SEEK_END)), '\0');
    const ssize_t count = ::pread(process.result, text.data(), text.size(), 0);
    FINETUNE_CHECK(count == ssize_t(text.size()));
    report = report_in(text);
  } else {
    report.status = RunStatus::failed;
    report.code = ExitCode::device;
    report.error = WIFSIGNALED(status)
                       ? concat("the run's process was ended by signal ", WTERMSIG(status),
                                WTERMSIG(status) == SIGKILL ? "; memory may be too small" : "")
                       : "the run's process had too little memory; fewer --jobs need less";
    report.seconds = seconds_now() - process.start;
  }
  ::close(process.result);
  process = {};
  return report;
}

void RunProcesses::stop_all() {
  stopped_ = true;
  for (const Process& process : processes_) {
    if (process.pid != 0) ::kill(process.pid, SIGTERM);
  }
}

std::vector<RunAtWork> RunProcesses::at_work() const {
  std::vector<RunAtWork> out;
  for (size_t place = 0; told_ && place < processes_.size(); ++place) {
    const Told& told = told_[place];
    if (processes_[place].pid == 0 || told.step == 0) continue;
    RunProgress progress;
    progress.step = told.step;
    progress.steps = told.steps;
    progress.loss = told.loss;
    progress.seconds_left = told.seconds_left;
    out.push_back({processes_[place].run, progress, seconds_now() - processes_[place].start});
  }
  return out;
}

std::pair<size_t, RunReport> RunProcesses::wait(const std::function<void()>& look) {
  for (;; std::this_thread::sleep_for(kPollInterval)) {
    look();
    if (!stopped_ && signals_of_runs().request() != StopRequest::none) stop_all();
    for (Process& process : processes_) {
      int status = 0;
      if (process.pid == 0 || ::waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
      const size_t run = process.run;
      RunReport report = take_result(process, status);
      if (!stopped_ && report.status == RunStatus::interrupted) stop_all();
      return {run, std::move(report)};
    }
  }
}

}  // namespace finetune
