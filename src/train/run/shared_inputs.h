// Inputs that the runs of one process share: data, read and tokenized once, and files' checksums.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/options/options.h"
#include "train/run/fingerprint.h"
#include "train/run/run_setup.h"

namespace finetune {

// Consecutive runs get their inputs here. This keeps the last task, so that following runs with the
// same data and model do not read them again. It assumes that files do not change. Not thread-safe.
class SharedInputs {
 public:
  // Like open_data(), but copies each pipe only once.
  DataFiles open(const TrainOptions& options, const std::function<void()>& check_stop);
  // Like read_task(). The task's loss is set from these options.
  std::shared_ptr<Task> read(const TrainOptions& options, const DataFiles& data,
                             const ModelFiles& model, const WeightSource& source,
                             const std::vector<std::string>& label_order);
  // Frees the task when no other run needs it.
  void forget_task() { task_.reset(); }
  // The SHA-256 of these files; the first call starts to compute it.
  std::shared_ptr<Fingerprint> sum(const std::vector<InputFile>& files, ExitCode code);
  // Waits until all checksums are computed and their threads have ended. Throws the error for the
  // first file that cannot be read.
  void wait_for_sums();

  // A text that is equal for runs that read the same data in the same way with the same model.
  static std::string key(const TrainOptions& options);

 private:
  std::map<std::string, InputFile> pipes_;
  std::string key_;  // of task_
  std::vector<std::string> label_order_;
  std::shared_ptr<Task> task_;
  std::map<std::string, std::shared_ptr<Fingerprint>> sums_;
};

}  // namespace finetune
