// What a run says of its course while it runs: metrics.jsonl, and the same numbers as tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/record/event_file.h"
#include "train/run/metrics_files.h"
#include "train/run/run_directory.h"

namespace finetune {

// A CSV file whose header is the first row's names. A number that is not finite, or that a row does
// not have, is an empty cell. Errors are Error(model) naming the file.
class MetricsTable {
 public:
  // Replaces what is there by these rows, whole; without any there is no file until the first one.
  MetricsTable(std::filesystem::path path, const std::vector<NamedNumbers>& rows);
  ~MetricsTable();
  MetricsTable(const MetricsTable&) = delete;
  MetricsTable& operator=(const MetricsTable&) = delete;

  void append(const NamedNumbers& row);

 private:
  std::string lines_of(const NamedNumbers& row);  // after the header, if it is the first one

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  int descriptor_ = -1;
};

// A training step, as its line has it.
struct StepNumbers {
  int64_t step;
  double epoch, loss, learning_rate, gradient_norm;
  int64_t tokens, samples;
  double seconds;
};

// metrics.jsonl leads; event files for TensorBoard are written beside it where they are asked for.
// metrics.csv has its steps and evaluations.csv its evaluations; where a run
// goes on they are made from it anew, so that a kill between two writes leaves no trace.
class RunLog {
 public:
  // The steps are those of MetricsLog. Warns where lines that were written every `log_every` steps
  // are gone.
  RunLog(const RunDirectory& directory, int64_t resume_step, int64_t evaluated_step,
         int64_t log_every, bool tensorboard = false);

  void append_step(const NamedNumbers& numbers);
  void append_step(const StepNumbers& numbers);
  void append_evaluation(const NamedNumbers& numbers);
  void sync();  // metrics.jsonl

 private:
  MetricsLog lines_;
  std::optional<MetricsTable> steps_, evaluations_;
  std::optional<EventFile> events_;
};

}  // namespace finetune
