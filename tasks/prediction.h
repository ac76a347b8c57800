// Prediction of new data in progress: samples come piece by piece and their predictions go out as
// they come, so that memory does not grow with the data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tasks/file_evaluation.h"
#include "tasks/task.h"

namespace finetune {

// What `finetune predict` was asked for.
struct PredictionRequest {
  std::string input;   // "-": standard input
  std::string output;  // "-": standard output
  std::string n_best;  // empty: not wanted
  std::optional<int64_t> top_k;
  bool all_probabilities = false;
  RowOptions rows;
  bool stream = false;            // rows are answered as they come
  bool json_lines = false;        // of rows: in place of CSV
  bool spreadsheet_safe = false;  // of rows: no cell of the CSV begins a formula
  std::string column_option;      // an option given that names a column, or empty
};

// Where predictions go. Once all of them are written complete() brings them to the disk, and
// commit() gives them their name: of several outputs all are complete before the first commit.
class PredictionOutput {
 public:
  virtual ~PredictionOutput() = default;
  virtual void write(std::string_view text) = 0;
  virtual void flush() = 0;  // what is written reaches who reads it now
  virtual void complete() = 0;
  virtual void commit() = 0;
};
using OpenOutput = std::function<std::unique_ptr<PredictionOutput>(const std::string& path)>;

// The model, loaded.
class PredictionModel {
 public:
  virtual ~PredictionModel() = default;
  // `progress` gets the share of the samples that is done.
  virtual void evaluate(const SampleSet& set, Evaluation& evaluation,
                        const std::function<void(double share)>& progress) = 0;
  virtual void evaluate(FileEvaluation& evaluation,
                        const std::function<void(double share)>& progress) = 0;
  // For the log, after all samples: what was not computed again. Empty: nothing to say.
  virtual std::string describe() const = 0;
};

// How far a prediction has come.
struct PredictionProgress {
  int64_t done = 0;
  std::string_view what;  // "rows"
  double share = -1;      // of the input; negative: unknown
};
// Returns whether it is shown: then the log is, too.
using ShowProgress = std::function<bool(const PredictionProgress&)>;

// Opened before the weights are loaded, so that faults show first.
class Prediction {
 public:
  virtual ~Prediction() = default;
  virtual Head head() const = 0;
  virtual int64_t max_length() const = 0;  // of a sample, in tokens
  virtual void run(PredictionModel& model, const OpenOutput& open, const ShowProgress& show) = 0;
};

}  // namespace finetune
