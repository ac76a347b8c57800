// Calls the trainer and reports what it returns or throws.
#include "experiments/sweep/run_in_turn.h"

#include <algorithm>
#include <exception>

#include "comm/agreement.h"
#include "core/clock.h"
#include "core/failure.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/process_stats.h"
#include "experiments/compare/run_record.h"
#include "train/run/run_directory.h"
#include "train/trainer.h"

namespace finetune {
namespace {

constexpr const char* kMemoryAdvice = "; a smaller micro-batch-tokens needs less";

bool is_stop(ExitCode code) {
  return code == ExitCode::time_limit || code == ExitCode::checkpointed ||
         code == ExitCode::interrupted;
}

// Gives rank 0 the message of the process that failed.
void share_error(Communicator& comm, std::string& error) {
  if (comm.size() == 1) return;
  const auto* bytes = reinterpret_cast<const uint8_t*>(error.data());
  for (const std::vector<uint8_t>& each : comm.gather({bytes, error.size()})) {
    if (error.empty()) error.assign(each.begin(), each.end());
  }
}

void take_outcome(const SweepRun& run, const TrainOutcome& outcome, RunReport& report) {
  report.code = outcome.code;
  if (is_stop(outcome.code)) {
    report.status = RunStatus::interrupted;
    return;
  }
  report.status = outcome.paused ? RunStatus::waiting : RunStatus::finished;
  report.result_line = outcome.result_line;
  for (std::string_view line : split(outcome.gate_table, '\n')) {
    if (!line.empty()) log_to_file(line);
  }
  if (report.code == ExitCode::assertion) report.error = outcome.failed_gates;
  if (report.result_line.empty()) return;  // not rank 0
  const fs::path directory = run.options.output;
  // A run that was killed just after its end still has checkpoints.
  if (run.options.keep_checkpoints.value_or(0) == 0 && fs::exists(directory / "checkpoints")) {
    RunDirectory(directory, OutputMode::resume).remove_checkpoints();
  }
  const RunRecord record = read_runs({directory}).front();
  report.metrics = record.metrics;
  report.best_metric = record.option("best-metric");
  if (!record.lost.empty()) {
    throw device_error("it ended without a part of it, which failed: ", record.lost);
  }
}

}  // namespace

RunReport run_in_turn(const SweepRun& run, Communicator& comm, SharedInputs& inputs,
                      double pause_share, const ProgressReceiver& progress) {
  TrainOptions options = run.options;
  options.resume = !options.overwrite;
  options.quiet = true;
  options.no_progress = true;
  RunInTurn turn{inputs, pause_share, progress};
  RunReport report;
  discard_held_lines();
  const CollectedWarnings warnings;
  reset_peak_memory();
  const double start = seconds_now();
  auto failed = [&](ExitCode code, const std::string& message) {
    report.status = is_stop(code) ? RunStatus::interrupted : RunStatus::failed;
    report.code = code;
    report.error = message;
    report.result_line.clear();
  };
  bool told = true;
  try {
    const TrainOutcome outcome = run_training(options, comm, &turn);
    agree_on_errors(comm, [&] { take_outcome(run, outcome, report); });
    close_log_file();
  } catch (const PeerFailed& peer) {
    failed(peer.code, "");
    told = false;
  } catch (const AgreedError& error) {
    failed(error.code(), error.what());
    told = false;
  } catch (const std::exception& failure) {
    if (comm.size() > 1) throw;
    const Error error = error_of(failure, kMemoryAdvice);
    failed(error.code(), error.what());
  }
  if (!told) share_error(comm, report.error);
  if (report.status == RunStatus::failed && comm.rank() == 0) {
    log_to_file(concat("finetune: error: ", report.error));
  }
  try {
    close_log_file();
  } catch (const Error&) {  // the report already has the run's error
  }
  report.seconds = seconds_now() - start;
  report.warnings = warnings.texts();
  return report;
}

}  // namespace finetune
