// The order of a sweep's runs, and what becomes of each.
#include "train/sweep/sweep.h"

#include <algorithm>
#include <memory>

#include "comm/agreement.h"
#include "core/files/files.h"
#include "train/compare/comparison_output.h"
#include "train/compare/noise.h"
#include "train/run/run_directory.h"
#include "train/run/shared_inputs.h"
#include "train/signals.h"
#include "train/sweep/preflight.h"
#include "train/sweep/run_in_turn.h"
#include "train/sweep/sweep_directory.h"

namespace finetune {
namespace {

class Sweep {
 public:
  Sweep(const Grid& grid, const SweepSettings& settings, Communicator& comm,
        const std::function<void(size_t, const RunReport&)>& ended)
      : grid_(grid), settings_(settings), comm_(comm), ended_(ended), reports_(grid.runs.size()) {}

  SweepResult run();

 private:
  void find_finished();
  std::vector<size_t> in_order_of_data(std::vector<size_t> runs) const;
  void perform(size_t run, bool kept);
  SweepResult result();
  ExitCode code() const;

  const Grid& grid_;
  SweepSettings settings_;
  Communicator& comm_;
  const std::function<void(size_t, const RunReport&)>& ended_;
  SharedInputs inputs_;
  std::unique_ptr<SweepDirectory> directory_;  // of rank 0
  std::vector<size_t> finished_, others_;      // places in the grid
  std::vector<RunReport> reports_;
  ExitCode stop_ = ExitCode::done;
};

void Sweep::find_finished() {
  std::string marks(grid_.runs.size(), ' ');
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    for (size_t r = 0; r < marks.size(); ++r) {
      const std::filesystem::path directory = grid_.runs[r].options.output;
      const bool is_run = output_state(directory) == OutputState::run;
      marks[r] = is_run && path_exists(directory / "metrics.json", ExitCode::model) ? 'x' : '-';
    }
  });
  comm_.broadcast(marks.data(), marks.size(), 0);
  for (size_t r = 0; r < marks.size(); ++r) (marks[r] == 'x' ? finished_ : others_).push_back(r);
  others_ = in_order_of_data(others_);
}

// Those that read the same one after the other, so that it is read once.
std::vector<size_t> Sweep::in_order_of_data(std::vector<size_t> runs) const {
  std::vector<std::string> keys;
  auto place = [&](size_t run) {
    const std::string key = SharedInputs::key(grid_.runs[run].options);
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) return found - keys.begin();
    keys.push_back(key);
    return ptrdiff_t(keys.size()) - 1;
  };
  std::vector<std::pair<ptrdiff_t, size_t>> order;
  for (size_t run : runs) order.emplace_back(place(run), run);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = order[i].second;
  return runs;
}

// `kept`: it has ended before.
void Sweep::perform(size_t run, bool kept) {
  RunReport& report = reports_[run];
  report = run_in_turn(grid_.runs[run], comm_, inputs_);
  report.kept = kept;
  if (report.status == RunStatus::interrupted) stop_ = report.code;
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    if (kept && report.status == RunStatus::failed) {
      // Its data or model are others now: the table would be of two kinds.
      throw Error(report.code, concat(grid_.runs[run].options.output, ": ", report.error));
    }
    directory_->write_tables(reports_);
    ended_(run, report);
  });
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

// Collective; with the comparison of what has finished, in the files too.
SweepResult Sweep::result() {
  SweepResult result{code(), std::move(reports_), {}, {}, {}};
  agree_on_errors(comm_, [&] {
    if (comm_.rank() > 0) return;
    result.others = directory_->other_runs();
    std::vector<std::string> directories;
    for (size_t r = 0; r < grid_.runs.size(); ++r) {
      const bool finished = result.reports[r].status == RunStatus::finished;
      if (finished) directories.push_back(grid_.runs[r].options.output);
    }
    if (directories.empty()) return;
    result.finished = read_runs(directories);
    result.comparison = compare_runs(result.finished, {}, {});
    add_differences(result.finished, *result.comparison);
    directory_->write_tables(result.reports, comparison_json(*result.comparison, result.finished));
  });
  return result;
}

SweepResult Sweep::run() {
  signals_of_runs();
  agree_on_errors(comm_, [&] {
    if (comm_.rank() == 0) check_sweep_directory(grid_);
  });
  find_finished();
  check_runs(grid_, others_, comm_, inputs_);
  agree_on_errors(comm_, [&] {
    if (comm_.rank() == 0) directory_ = std::make_unique<SweepDirectory>(grid_);
  });
  for (size_t run : finished_) {
    if (stop_ == ExitCode::done) perform(run, true);
  }
  for (size_t run : others_) {
    if (stop_ == ExitCode::done) perform(run, false);
  }
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
  }
  return "";
}

SweepResult run_sweep(const Grid& grid, const SweepSettings& settings, Communicator& comm,
                      const std::function<void(size_t run, const RunReport& report)>& ended) {
  return Sweep(grid, settings, comm, ended).run();
}

}  // namespace finetune
