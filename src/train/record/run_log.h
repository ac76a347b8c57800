// Records the course of a run: metrics.jsonl, and the same numbers as tables.
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

// A CSV file; its header has the first row's names. The cell of a number that is not finite, or
// that the row does not have, is empty. Errors are Error(model) naming the file.
class MetricsTable {
 public:
  // Replaces the file by these rows. If there are none, removes it until the first append().
  MetricsTable(std::filesystem::path path, const std::vector<NamedNumbers>& rows);
  ~MetricsTable();
  MetricsTable(const MetricsTable&) = delete;
  MetricsTable& operator=(const MetricsTable&) = delete;

  void append(const NamedNumbers& row);

 private:
  std::string lines_of(const NamedNumbers& row);  // with the header if it is the first row

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  int descriptor_ = -1;
};

// The numbers of a training step in its line.
struct StepNumbers {
  int64_t step;
  double epoch, loss, learning_rate, gradient_norm;
  int64_t tokens, samples;
  double seconds;
};

// Writes metrics.jsonl and, if asked for, event files for TensorBoard. metrics.csv has the steps
// and evaluations.csv the evaluations. When a run is resumed, both are made again from
// metrics.jsonl, so that a kill between two writes leaves no trace.
class RunLog {
 public:
  // The steps are those of MetricsLog. Warns if lines are missing, which were written every
  // `log_every` steps.
  RunLog(const RunDirectory& directory, int64_t resume_step, int64_t evaluated_step,
         int64_t log_every, bool tensorboard = false);

  void append_step(const NamedNumbers& numbers);
  void append_step(const StepNumbers& numbers);
  void append_evaluation(const NamedNumbers& numbers);
  void sync();  // syncs metrics.jsonl to the disk

 private:
  MetricsLog lines_;
  std::optional<MetricsTable> steps_, evaluations_;
  std::optional<EventFile> events_;
};

}  // namespace finetune
