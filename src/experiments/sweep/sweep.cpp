// Trains a sweep's runs in order, cuts settings, and reports each run's result.
#include "experiments/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "comm/agreement.h"
#include "core/clock.h"
#include "core/failure.h"
#include "core/text/counted.h"
#include "experiments/compare/noise.h"
#include "experiments/sweep/halving.h"
#include "experiments/sweep/preflight.h"
#include "experiments/sweep/run_in_turn.h"
#include "experiments/sweep/run_processes.h"
#include "experiments/sweep/sweep_directory.h"
#include "train/prepare/dry_run.h"
#include "train/run/gates.h"
#include "train/run/run_directory.h"
#include "train/run/shared_inputs.h"
#include "train/schedule.h"
#include "train/signals.h"

namespace finetune {
namespace {

bool is_asked_to_stop() {
  return signals_of_runs().request() != StopRequest::none;
}

class Sweep {
 public:
  Sweep(const Grid& grid, const SweepSettings& settings, Communicator& comm,
        const SweepListener& listener)
      : grid_(grid),
        settings_(settings),
        comm_(comm),
        listener_(listener),
        reports_(grid.runs.size()) {}

  SweepResult run();

 private:
  void find_finished();
  void keep_diverged();
  void take(size_t run, RunReport report);
  SweepRun next_turn_of(size_t run);
  void perform(const std::vector<size_t>& runs, double pause_share);
  void perform_in_processes(const std::vector<size_t>& runs, double pause_share);
  void plan_halving();
  int64_t rung_step(size_t run, double share) const {
    return evaluation_at_share(share, lengths_[run].steps, lengths_[run].interval);
  }
  std::vector<Setting> cut(const std::vector<Setting>& settings, double share);
  void drop(size_t run, const RungValue& value);
  std::vector<size_t> runs_before(const std::vector<Setting>& settings, double share);
  void halve();
  SweepResult result();
  ExitCode code() const;

  const Grid& grid_;
  SweepSettings settings_;
  Communicator& comm_;
  const SweepListener& listener_;
  SharedInputs inputs_;
  std::unique_ptr<SweepDirectory> directory_;  // of rank 0
  std::vector<bool> kept_;                     // the run had ended before this call
  std::vector<bool> redone_;                   // the run had ended, but a part of it failed
  std::vector<size_t> finished_, others_;      // places in the grid
  std::vector<RunLength> lengths_;             // for halving
  std::vector<double> shares_;                 // the rungs of halving
  std::string key_read_;                       // SharedInputs::key of `inputs_`, with --jobs
  std::vector<RunReport> reports_;
  ExitCode stop_ = ExitCode::done;
};

void Sweep::find_finished() {
  std::string marks(grid_.runs.size(), ' ');
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    for (size_t r = 0; r < marks.size(); ++r) {
      const std::filesystem::path directory = grid_.runs[r].options.output;
      try {
        if (output_state(directory) != OutputState::run || !has_ended(directory))
          marks[r] = '-';
        else
          marks[r] = lost_parts(directory).empty() ? 'x' : 'r';
      } catch (const Error&) {
        marks[r] = '-';  // its own turn reports the error
      }
    }
  });
  comm_.broadcast(marks.data(), marks.size(), 0);
  for (size_t r = 0; r < marks.size(); ++r) {
    kept_.push_back(marks[r] == 'x');
    redone_.push_back(marks[r] == 'r');
    (kept_[r] ? finished_ : others_).push_back(r);
  }
  others_ = in_order_of_data(grid_, others_);
}

// Reports runs that diverged and would diverge again; they are not run. Collective.
void Sweep::keep_diverged() {
  std::map<size_t, RunReport> found;
  agree_on_errors(comm_, [&] {
    if (comm_.rank() == 0) found = diverged_before(grid_, others_, inputs_);
    for (const auto& [run, report] : found) {
      kept_[run] = true;
      reports_[run] = report;
    }
    if (!found.empty()) directory_->write_tables(reports_);
    for (const auto& [run, report] : found) listener_.ended(run, report);
  });
  std::vector<uint8_t> kept(grid_.runs.size());
  for (const auto& [run, report] : found) kept[run] = 1;
  comm_.broadcast(kept.data(), kept.size(), 0);
  std::erase_if(others_, [&](size_t run) { return kept[run] != 0; });
}

// Records a run's report. A run that waits at a rung has not ended. Collective.
void Sweep::take(size_t run, RunReport report) {
  report.kept = kept_[run];
  report.seconds += reports_[run].seconds;
  reports_[run] = std::move(report);
  const RunReport& taken = reports_[run];
  if (taken.status == RunStatus::interrupted && stop_ == ExitCode::done) stop_ = taken.code;
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    for (const std::string& text : taken.warnings) listener_.warned(run, text);
    if (taken.status == RunStatus::waiting) return;
    if (taken.kept && taken.status == RunStatus::failed) {
      if (taken.code == ExitCode::usage || taken.code == ExitCode::data) {
        // Its data or model have changed, so the table would compare different things.
        throw Error(taken.code, concat(grid_.runs[run].options.output, ": ", taken.error));
      }
      reports_[run].error += "; without its directory the run is done again";
    }
    if (taken.status == RunStatus::failed && taken.code == ExitCode::diverged) {
      reports_[run].diverged_with = divergence_key(grid_.runs[run], inputs_);
    }
    directory_->write_tables(reports_);
    listener_.ended(run, taken);
  });
}

// Returns the run as it starts now: from the beginning if a part of it had failed.
SweepRun Sweep::next_turn_of(size_t run) {
  SweepRun turn = grid_.runs[run];
  turn.options.overwrite = redone_[run];
  redone_[run] = false;
  return turn;
}

void Sweep::perform(const std::vector<size_t>& runs, double pause_share) {
  if (settings_.jobs > 1) return perform_in_processes(runs, pause_share);
  for (size_t run : runs) {
    if (stop_ != ExitCode::done) return;
    const double start = seconds_now();
    const auto tell = [&](const RunProgress& progress) {
      listener_.progressed({{run, progress, seconds_now() - start}});
    };
    take(run, run_in_turn(next_turn_of(run), comm_, inputs_, pause_share, tell));
  }
}

void Sweep::perform_in_processes(const std::vector<size_t>& runs, double pause_share) {
  RunProcesses processes(settings_.jobs);
  for (size_t next = 0; !processes.empty() || (next < runs.size() && stop_ == ExitCode::done);) {
    if (processes.full() || next == runs.size() || stop_ != ExitCode::done) {
      auto [run, report] = processes.wait([&] { listener_.progressed(processes.at_work()); });
      if (is_asked_to_stop()) stop_ = exit_code_of(signals_of_runs().request());
      take(run, std::move(report));
      continue;
    }
    const size_t run = runs[next++];
    const SweepRun turn = next_turn_of(run);
    const TrainOptions& options = turn.options;
    try {
      if (const std::string key = SharedInputs::key(options); key != key_read_) {
        key_read_.clear();
        read_inputs(options, inputs_);
        key_read_ = key;
      }
      processes.start(run, !options.threads, [&](const ProgressReceiver& progress) {
        return run_in_turn(turn, comm_, inputs_, pause_share, progress);
      });
    } catch (const std::exception& failure) {
      const Error error = error_of(failure);
      RunReport report;
      report.status = is_asked_to_stop() ? RunStatus::interrupted : RunStatus::failed;
      report.code = error.code();
      report.error = error.what();
      take(run, std::move(report));
    }
  }
}

// Finds how long the runs are, and when settings are cut. Collective.
void Sweep::plan_halving() {
  if (settings_.halving == 0) return;
  lengths_.resize(grid_.runs.size());
  agree_on_errors(comm_, [&] {
    if (comm_.rank() == 0) lengths_ = lengths_of(grid_, inputs_);
  });
  comm_.broadcast(lengths_.data(), lengths_.size() * sizeof(RunLength), 0);
  agree_on_errors(comm_, [&] { shares_ = rungs_of(grid_, lengths_, settings_.halving); });
}

// Returns the settings that survive a rung of --halving. Drops the runs of the others and deletes
// their checkpoints. Collective.
std::vector<Setting> Sweep::cut(const std::vector<Setting>& settings, double share) {
  std::vector<uint8_t> goes_on(settings.size());
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    std::vector<std::optional<double>> means;
    std::map<size_t, RungValue> values;
    std::string metric;
    for (const Setting& setting : settings) {
      std::vector<double> of_runs;
      for (size_t run : setting.runs) {
        const auto value = value_at(grid_.runs[run], rung_step(run, share));
        if (!value || reports_[run].status == RunStatus::failed) continue;
        metric = value->metric;
        of_runs.push_back(value->value);
        values[run] = *value;
      }
      const bool whole = of_runs.size() == setting.runs.size();
      means.push_back(whole ? std::optional(estimate_of(of_runs).mean) : std::nullopt);
    }
    const auto best = survivors(means, larger_is_better(metric), settings_.halving);
    for (size_t s : best) goes_on[s] = 1;
    listener_.told(concat("after 1/", std::llround(1 / share), " of the evaluations: ", best.size(),
                          " of ", counted(settings.size(), "setting goes on", "settings go on"),
                          ", by ", metric));
    for (size_t s = 0; s < settings.size(); ++s) {
      for (size_t run : settings[s].runs) {
        if (!goes_on[s] && reports_[run].status == RunStatus::waiting) drop(run, values[run]);
      }
    }
  });
  comm_.broadcast(goes_on.data(), goes_on.size(), 0);
  std::vector<Setting> out;
  for (size_t s = 0; s < settings.size(); ++s) {
    if (goes_on[s]) out.push_back(settings[s]);
  }
  return out;
}

// Marks a run as dropped and removes its checkpoints. On rank 0.
void Sweep::drop(size_t run, const RungValue& value) {
  RunReport& report = reports_[run];
  report.status = RunStatus::dropped;
  report.metrics = value.metrics;
  report.best_metric = value.metric;
  const std::filesystem::path directory = grid_.runs[run].options.output;
  if (output_state(directory) == OutputState::run) {
    RunDirectory(directory, OutputMode::resume).remove_checkpoints();
  }
  directory_->write_tables(reports_);
  listener_.ended(run, report);
}

// Returns the runs that must train further to reach this share (1: their end). Collective.
std::vector<size_t> Sweep::runs_before(const std::vector<Setting>& settings, double share) {
  std::vector<uint8_t> needed(grid_.runs.size());
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    for (const Setting& setting : settings) {
      for (size_t run : setting.runs) {
        if (reports_[run].status != RunStatus::waiting) continue;
        needed[run] = share == 1 || !value_at(grid_.runs[run], rung_step(run, share));
      }
    }
  });
  comm_.broadcast(needed.data(), needed.size(), 0);
  std::vector<size_t> runs;
  for (size_t run = 0; run < needed.size(); ++run) {
    if (needed[run]) runs.push_back(run);
  }
  return in_order_of_data(grid_, std::move(runs));
}

void Sweep::halve() {
  std::vector<Setting> settings = settings_of(grid_);
  for (double share : shares_) {
    perform(runs_before(settings, share), share);
    if (stop_ != ExitCode::done) return;
    settings = cut(settings, share);
  }
  perform(runs_before(settings, 1), 0);
}

ExitCode Sweep::code() const {
  if (stop_ != ExitCode::done) return stop_;
  ExitCode gate = ExitCode::done;
  for (const RunReport& report : reports_) {
    if (report.status == RunStatus::failed) return report.code;
    if (gate == ExitCode::done) gate = report.code;
  }
  return gate;
}

// Returns the result, with a comparison of the finished runs, and writes the files. Collective.
SweepResult Sweep::result() {
  SweepResult result{code(), std::move(reports_), {}, {}, {}, {}};
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    result.others = directory_->other_runs();
    std::vector<std::filesystem::path> directories;
    std::vector<size_t> places;
    for (size_t r = 0; r < grid_.runs.size(); ++r) {
      if (result.reports[r].status != RunStatus::finished) continue;
      directories.push_back(grid_.runs[r].options.output);
      places.push_back(r);
    }
    if (directories.empty()) return;
    result.finished = read_runs(directories);
    try {
      result.comparison = compare_runs(result.finished, {}, {});
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      listener_.told(concat("the runs cannot be compared: ", error.what()));
      return;
    }
    if (result.comparison->deciding().starts_with("eval_")) {
      result.best = places[best_run(*result.comparison, result.finished)];
    }
    add_differences(result.finished, *result.comparison);
    directory_->write_tables(result.reports, summary_of(result));
  });
  return result;
}

SweepResult Sweep::run() {
  signals_of_runs();
  agree_on_errors(comm_, [&] {
    if (settings_.jobs == 1 || comm_.size() == 1) return;
    throw usage_error("--jobs ", settings_.jobs, ": under mpirun each run takes all ", comm_.size(),
                      " processes, one after the other; leave --jobs out");
  });
  agree_on_errors(comm_, [&] {
    if (comm_.rank() == 0) check_sweep_directory(grid_);
  });
  find_finished();
  check_runs(grid_, others_, comm_, inputs_);
  plan_halving();
  agree_on_errors(comm_, [&] {
    if (comm_.rank() == 0) directory_ = std::make_unique<SweepDirectory>(grid_);
  });
  keep_diverged();  // reads sweep.json before a run's end replaces it
  for (size_t run : finished_) {
    if (stop_ == ExitCode::done) take(run, run_in_turn(grid_.runs[run], comm_, inputs_));
  }
  if (settings_.halving > 0)
    halve();
  else
    perform(others_, 0);
  return result();
}

}  // namespace

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::waiting:
      return "waiting";
    case RunStatus::finished:
      return "finished";
    case RunStatus::failed:
      return "failed";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::dropped:
      return "dropped";
  }
  return "";
}

SweepResult run_sweep(const Grid& grid, const SweepSettings& settings, Communicator& comm,
                      const SweepListener& listener) {
  return Sweep(grid, settings, comm, listener).run();
}

}  // namespace finetune
