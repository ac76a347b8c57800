// Evaluation of files of any size, piece by piece.
// Samples come in order and are forgotten once their logits are in, so that memory does not grow
// with the files.
#pragma once

#include "tasks/task.h"

namespace finetune {

class FileEvaluation : public Evaluation {
 public:
  virtual Head head() const = 0;
  virtual int64_t max_length() const = 0;                     // of a sample, in tokens
  virtual std::vector<std::string> metric_names() const = 0;  // all that metrics() can give
  // Lines for the log: sizes and labels; after all samples what only tokenizing tells.
  virtual std::vector<std::string> describe() const = 0;
  virtual std::vector<std::string> describe_samples() const = 0;

  // Predictions go to files in `directory` as they come; write_files(directory) completes them.
  // Before the first next().
  virtual void open_files(const std::filesystem::path& directory) = 0;

  virtual int64_t rows() const = 0;  // or questions, that are evaluated

  // More samples, valid until next() or add(); null at the end. add() must get all of them in this
  // order; its batches count them through all pieces.
  virtual const SampleSet* next() = 0;
  virtual double share() const = 0;  // of the files, 0 to 1, that next() has given

  // The rows that the model was trained on, files included: for baselines(), and for the metrics of
  // rows whose text was not trained on. Before metric_names(). Without it they are not known. Error
  // where they cannot be read.
  virtual void take_training_rows(const TaskOptions&) {}
  // After all samples. Error(device) or Error(model) if the machine cannot compute them.
  virtual Baselines baselines();
  // Beside the metrics, for people, once all samples are in: lines with their ends, or nothing.
  virtual std::string report() const { return {}; }
  // The same for programs: members of a JSON object, without its braces, or nothing.
  virtual std::string report_json() const { return {}; }
};

}  // namespace finetune
