// What the runs of one process need once: their data read and tokenized, the sums of their files.
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

// Runs in turn ask here for what they read. Of the last data and model that were asked for the task
// is kept, so that runs of the same one after the other read it once. Files are taken to stay what
// they are. Not thread-safe.
class SharedInputs {
 public:
  // As open_data(). Pipes are copied once.
  DataFiles open(const TrainOptions& options, const std::function<void()>& check_stop);
  // As read_task(); its loss follows these options.
  std::shared_ptr<Task> read(const TrainOptions& options, const DataFiles& data,
                             const ModelFiles& model, const WeightSource& source,
                             const std::vector<std::string>& label_order);
  // No other run will ask for it.
  void forget_task() { task_.reset(); }
  // Begun at the first call with these files.
  std::shared_ptr<Fingerprint> sum(const std::vector<InputFile>& files, ExitCode code);
  // Until all sums that were begun are there and their threads have ended. Error for the first file
  // that cannot be read.
  void wait_for_sums();

  // Equal for runs that read the same data in the same way with the same model.
  static std::string key(const TrainOptions& options);

 private:
  std::map<std::string, InputFile> pipes_;
  std::string key_;  // of task_
  std::vector<std::string> label_order_;
  std::shared_ptr<Task> task_;
  std::map<std::string, std::shared_ptr<Fingerprint>> sums_;
};

}  // namespace finetune
