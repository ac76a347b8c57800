// Everything that a training run needs, checked and loaded, before its first step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/assertions.h"
#include "train/checkpoint.h"
#include "train/engine.h"
#include "train/fingerprint.h"
#include "train/metrics_files.h"
#include "train/options.h"
#include "train/run_directory.h"
#include "train/schedule.h"
#include "train/trainer.h"
#include "train/training_step.h"

namespace finetune {

struct Session {
  TrainOptions options;  // as resolved
  ModelFiles model;
  std::unique_ptr<Task> task;
  std::vector<Assertion> assertions;
  std::string best_metric;  // empty without evaluation data
  std::unique_ptr<RunDirectory> directory;
  std::unique_ptr<MetricsLog> metrics_log;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Objective> objective;  // of `task`'s training samples
  std::unique_ptr<TrainingStep> step;
  Schedule schedule;
  CheckpointState state;  // of the checkpoint that is continued, or the beginning
  int64_t micro_batch_tokens = 0;
  double time_limit = 0;  // seconds since the process started; 0: none
  double startup_seconds = 0;
  bool finished = false;  // --resume of a run that has ended: `directory`, `assertions` alone

  std::unique_ptr<Fingerprint> data_fingerprint;
  std::unique_ptr<Fingerprint> model_fingerprint;
  // Puts the sums into `state`; on a resumed run, Error(data) if they are not the checkpoint's.
  void wait_for_fingerprints();
  CheckpointArenas arenas();

  // The evaluation set through the present weights, its metrics and its time in `metrics`. Null if
  // `poll` (the share done) stopped it.
  std::unique_ptr<Evaluation> evaluate(Metrics& metrics, const std::function<bool(double)>& poll);
};

// Checks options, data and model (Error, nothing written), makes the run's directory, loads or
// continues. Of a finished run nothing is loaded. The console is opened here: from then on the log
// goes to standard error.
std::unique_ptr<Session> prepare_session(const TrainOptions& options);

}  // namespace finetune
