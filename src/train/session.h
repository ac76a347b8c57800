// A training session: everything that a run needs, checked and loaded, before its first step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "distributed/device/layout_peers.h"
#include "distributed/layout/layout_groups.h"
#include "distributed/layout/stage_split.h"
#include "distributed/reduce/counted_tensor_sum.h"
#include "engine/engine.h"
#include "inference/replica_stages.h"
#include "tasks/evaluator.h"
#include "tasks/objective.h"
#include "train/checkpoint/checkpoint.h"
#include "train/layout/pipeline_links.h"
#include "train/options/options.h"
#include "train/record/run_log.h"
#include "train/run/fingerprint.h"
#include "train/run/gates.h"
#include "train/run/run_directory.h"
#include "train/run/run_setup.h"
#include "train/run/shared_inputs.h"
#include "train/schedule.h"
#include "train/signals.h"
#include "train/training_step.h"

namespace finetune {

struct Session {
  explicit Session(Communicator& c) : comm(c) {}

  // ---- of every process ---------------------------------------------------------------------
  Communicator& comm;
  std::unique_ptr<LayoutGroups> groups;  // of the layout's axes; null in a finished run
  StageSplit split;                      // the model's layers
  std::unique_ptr<PipelineLinks> links;  // to other stages; null where there are none
  TrainOptions given;                    // as the command line and --config have them
  TrainOptions options;                  // as resolved
  ModelFiles model;                      // of those that did not read: the config alone
  std::shared_ptr<void> shared_samples;  // what `objective` views where processes share it
  std::unique_ptr<CountedTensorSum>
      tensor_sum;  // with other tensor ranks; null where there are none
  std::unique_ptr<Engine> engine;
  std::unique_ptr<LayoutPeers> peers;             // with devices of their own
  std::unique_ptr<ReplicaStages> replica_stages;  // of evaluation; null where a process has all
  std::unique_ptr<Objective> objective;           // of the training samples
  std::unique_ptr<TrainingStep> step;
  Schedule schedule;
  Head head;
  DeviceMemory device_at_start;  // before the run has allocated anything there
  CheckpointState state;  // of the checkpoint that is continued, or the beginning; others than rank
                          // 0 know where the loop stands, no more
  MicroBatchLimits evaluation;     // zeros: none
  int64_t micro_batch_tokens = 0;  // of evaluation, and of training without --micro-batches
  bool has_eval = false;
  bool finished = false;  // --resume of a run that has ended: `directory`, `assertions` alone

  // ---- of rank 0 ----------------------------------------------------------------------------
  std::shared_ptr<Task> task;
  std::vector<Assertion> assertions;
  std::string best_metric;                             // empty without evaluation data
  std::map<std::string, std::string> tokenizer_files;  // as read, by their names
  std::unique_ptr<RunDirectory> directory;
  std::unique_ptr<RunLog> log;
  double time_limit = 0;  // seconds since the process started; 0: none
  double startup_seconds = 0;
  DataFiles data;
  std::shared_ptr<Fingerprint> data_fingerprint;
  std::shared_ptr<Fingerprint> model_fingerprint;

  // What to say where the GPU's memory was too small (OutOfDeviceMemory).
  Error too_little_memory() const;

  bool leads() const { return comm.rank() == 0; }
  // Null: through memory of the host, or there are no others.
  GroupPeers* peers_along(Axis axis) const { return peers ? peers->along(axis) : nullptr; }
  // A replica has several processes.
  bool has_parts() const { return groups && groups->layout().pp() * groups->layout().tp() > 1; }
  // Puts the sums into `state`; on a resumed run, Error(data) if they are not those of before.
  void wait_for_fingerprints();

  // Collective; rank 0 alone has a result: the evaluation set through the present weights, its
  // metrics and its time in `metrics`. Null if `poll` (the share done) stopped it.
  std::unique_ptr<Evaluator> evaluate(Metrics& metrics, const std::function<bool(double)>& poll);
};

// NaN or infinity, found at this step.
Error diverged(int64_t step, const std::string& what);

// To the log, on rank 0: the model, how it was loaded, the data, where and in what pieces it is
// computed, the schedule, and `warnings` that are not empty.
void describe_session(const Session& session, const std::vector<std::string>& loaded,
                      const std::vector<std::string>& warnings);

// Checks options, data and model (Error, nothing written), makes the run's directory, loads or
// continues. Of a finished run nothing is loaded: its data and model are compared by their sums.
// The console is opened here: from then on rank 0's log goes to standard error. A signal ends the
// wait for a pipe's data or for these sums: Error(its exit code). `shared`: what other runs of this
// process may have read, and the next ones find; null: there are none. Collective.
std::unique_ptr<Session> prepare_session(const TrainOptions& options, Communicator& comm,
                                         const SignalGuard& signals, SharedInputs* shared);

}  // namespace finetune
