// The parts of a training run. Each part is built once, before the first step, and is then const.
// Functions take only the parts that they need.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "distributed/layout/layout_groups.h"
#include "distributed/layout/stage_split.h"
#include "distributed/reduce/tensor_sums.h"
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
#include "train/schedule.h"
#include "train/training_step.h"

namespace finetune {

// The processes of the run, and how this one computes.
struct Machine {
  Communicator& world;
  std::unique_ptr<LayoutGroups> groups;  // along the layout's axes
  std::string code_path;                 // the instructions of this process: "CPU, AVX2, bf16"
  DeviceMemory device_at_start;          // before the run allocated anything on the device

  bool leads() const { return world.rank() == 0; }
  const Layout& layout() const { return groups->layout(); }
  // Whether a replica has several processes, each with a part of the model.
  bool has_parts() const { return layout().pp() * layout().tp() > 1; }
};

// What the run does. All processes agreed on it, so it is equal on all of them.
struct Settings {
  TrainOptions given;    // from the command line and --config
  TrainOptions options;  // resolved: every option that the run uses has a value
  // Seconds since the process started; 0: no limit. `began` 0: when the process started.
  double time_limit = 0, began = 0;
  double ends_by = 0, last_step_by = 0;  // of --time-budget
  EncoderConfig config;
  Head head;
  StageSplit split;  // of the model's layers
  Schedule schedule;
  int64_t shard_micro_batches = 1;  // the most that a virtual shard has
  MicroBatchLimits training;        // the largest micro-batch of training
  MicroBatchLimits evaluation;      // zeros: there is no evaluation
  int64_t micro_batch_tokens = 0;   // of evaluation, and of training without --micro-batches
  bool has_eval = false;
};

// The data and the model's files, as rank 0 read them.
struct Inputs {
  DataFiles data;
  std::shared_ptr<Task> task;
  std::filesystem::path model;                         // its directory
  std::map<std::string, std::string> tokenizer_files;  // contents, by file name
  std::shared_ptr<Fingerprint> data_sum, model_sum;

  // Waits for the SHA-256 of data and model and puts them into `state`. Error(data) if `state` has
  // different ones: the files changed since the run began.
  void keep_sums(CheckpointState& state) const;
};

// The part of the model that this process trains, and its links to other processes.
struct Learner {
  std::shared_ptr<void> samples;                 // owns the arrays that `objective` reads
  std::unique_ptr<CountedTensorSum> tensor_sum;  // null: this process has all tensor shards
  std::unique_ptr<Engine> engine;
  std::unique_ptr<LayoutPeers> peers;    // device to device
  std::unique_ptr<PipelineLinks> links;  // to other stages; null: there is one stage
  std::unique_ptr<ReplicaStages>
      replica_stages;                    // for evaluation; null: no parts, or no evaluation
  std::unique_ptr<Objective> objective;  // of the training samples
  std::unique_ptr<TrainingStep> step;
  bool has_new_fit = false;        // with --recipe quick: not yet in a checkpoint
  std::vector<float> out_of_fold;  // rank 0, --folds: the logits to evaluate, for all samples

  // Null if messages go through the host's memory, or if the axis has only this process.
  GroupPeers* peers_along(Axis axis) const { return peers ? peers->along(axis) : nullptr; }
};

// The run's directory and what rank 0 writes and checks there.
struct Books {
  std::unique_ptr<RunDirectory> directory;
  std::unique_ptr<RunLog> log;
  std::vector<Assertion> assertions;
  std::string best_metric;  // empty without evaluation data
  double startup_seconds = 0;
};

struct TrainingRun {
  const Machine machine;
  const Settings settings;
  const std::unique_ptr<const Inputs> inputs;  // null except on rank 0
  const Learner learner;
  const std::unique_ptr<const Books> books;  // null except on rank 0
  // The state of the checkpoint that the run continues, or of the beginning. Ranks other than 0
  // only know the position in the loop.
  CheckpointState state;
};

// Evaluates the current weights on the evaluation set. Collective. On rank 0 it returns the
// evaluator and fills `metrics`, with its time. Returns null if `poll`, called with the share done,
// returned false, and on other processes.
std::unique_ptr<Evaluator> evaluate(const TrainingRun& run, Metrics& metrics,
                                    const std::function<bool(double)>& poll);

// The error for an OutOfDeviceMemory, which says what the run needs. `eval` may be null, and the
// learner may lack its engine.
Error too_little_memory(const Machine& machine, const Settings& settings, const Learner& learner,
                        const SampleSet* eval);

// The error for a loss, gradient or weight that is NaN or infinite.
Error diverged(int64_t step, const std::string& what);

// Logs on rank 0: the model, how it was loaded (`loaded`), the data, the machine, the layout, the
// schedule, and the `remarks` that are not empty.
void describe_run(const Machine& machine, const Settings& settings, const Inputs& inputs,
                  const Learner& learner, const std::vector<std::string>& loaded,
                  const std::vector<std::string>& remarks);

}  // namespace finetune
