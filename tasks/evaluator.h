// Evaluator: turns the logits of rows into metrics and predictions, chunk by chunk. It returns the
// samples of some rows at a time, receives their logits in the same order, and then forgets the
// rows, so that memory does not grow with the files. The rows come from memory in training, from
// files in evaluate, and from an input without labels in predict.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "tasks/task.h"

namespace finetune {

// Takes the logits of samples, in the order of the samples.
class LogitsSink {
 public:
  virtual ~LogitsSink() = default;
  // The logits of a micro-batch on the host, row-major: (B, C) for sequences, (T, 2) for tokens, or
  // the scores that Engine::infer computes for hidden tokens. batch.indices numbers the samples
  // from 0 on through all chunks; each sample comes once.
  virtual void add(const PackedBatch& batch, const float* logits) = 0;
};

// The samples of some rows. Valid until the next call of next() or add().
struct SampleChunk {
  SampleView samples;
  std::span<const int64_t> first_window = {};  // as in SampleSet; only differences count
};

// Cuts a SampleSet in memory into chunks of some rows.
class SampleSetChunks {
 public:
  // `set` must outlive this.
  explicit SampleSetChunks(const SampleSet& set) : set_(set) {}
  std::optional<SampleChunk> next();
  double share() const;  // of the rows, the share returned so far, 0 to 1
  int64_t rows_given() const { return given_; }
  void rewind() { given_ = 0; }

 private:
  int64_t rows() const;

  const SampleSet& set_;
  int64_t given_ = 0;
};

// An open file of predictions. complete() writes the text to the disk, and commit() gives the file
// its name. If there are several outputs, complete all before the first commit().
class PredictionOutput {
 public:
  virtual ~PredictionOutput() = default;
  virtual void write(std::string_view text) = 0;
  virtual void flush() = 0;  // a reader of a pipe sees what was written
  virtual void complete() = 0;
  virtual void commit() = 0;
};
using OpenOutput = std::function<std::unique_ptr<PredictionOutput>(const std::string& path)>;
// Opens files in `directory` that appear whole on commit().
OpenOutput files_in(const std::filesystem::path& directory);

// Words for the log: "predicted 12 rows".
struct EvaluatedUnit {
  std::string_view verb = "predicted", rows = "rows";
};

bool all_finite(std::span<const float> outputs);
// Error(diverged) for outputs that are NaN or infinite, so that metrics never hide a diverged
// model. `of`: "row 7", "question '1'".
Error not_finite(const std::string& of);

class Evaluator : public LogitsSink {
 public:
  virtual Head head() const = 0;
  virtual int64_t max_length() const = 0;                               // of a sample, in tokens
  virtual std::vector<std::string> metric_names() const { return {}; }  // all that may occur
  // Lines for the log: describe() before the first chunk, describe_samples() after the last one,
  // when the lengths of the texts are known. warnings() are shown even with --quiet.
  virtual std::vector<std::string> describe() const { return {}; }
  virtual std::vector<std::string> describe_samples() const { return {}; }
  virtual std::vector<std::string> warnings() const { return {}; }
  // Warnings that are already clear while predictions are computed. Returns each line once.
  virtual std::vector<std::string> early_warnings() { return {}; }

  // The next chunk, or nothing at the end. add() must get the logits of all its samples.
  virtual std::optional<SampleChunk> next() = 0;
  // Whether add() must get all logits of a chunk before the next call of next().
  virtual bool answers_each_chunk() const { return false; }
  // The share of the input, 0 to 1, that next() has returned; negative if it is unknown.
  virtual double share() const = 0;
  virtual int64_t rows() const = 0;  // rows or questions answered so far
  virtual EvaluatedUnit unit() const { return {}; }
  virtual double seconds_waited() const { return 0; }  // for rows from a pipe

  // Opens the outputs, to write predictions while they are computed. Call before next().
  virtual void open_outputs(const OpenOutput&) {}
  // Call after all logits: completes the outputs and gives them their names. Error(data) if the
  // input had rows, but no usable ones.
  virtual void commit_outputs() {}
  // After all logits: "eval_loss", "eval_accuracy", ...; empty without labels.
  virtual Metrics metrics() = 0;
  // After all logits: writes confusion.csv, ... into `directory`. For rows in memory it also writes
  // the files of open_outputs(): predictions.csv, or predictions.json, ...
  virtual void write_files(const std::filesystem::path& directory) = 0;

  // Reads the rows that the model was trained on, for baselines() and for the metrics of rows whose
  // text was not trained on. Call it before metric_names(). Error(data) if the rows cannot be read.
  virtual void take_training_rows(const TaskOptions&) {}
  // After all logits. Error(device) or Error(model) if they cannot be computed.
  virtual Baselines baselines();
  // With options.promise, after all logits.
  virtual std::optional<Promise> promise() const { return {}; }
  // After all logits: tables for people as lines with line ends, or "".
  virtual std::string report() const { return {}; }
  // The same for programs: members of a JSON object without its braces, or "".
  virtual std::string report_json() const { return {}; }
};

}  // namespace finetune
