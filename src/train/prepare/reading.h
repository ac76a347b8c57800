// Reads a run's data and model, on the processes that need them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_store.h"
#include "train/run/shared_inputs.h"
#include "train/signals.h"
#include "train/training_run.h"

namespace finetune {

// The context of each step of the preparation.
struct Context {
  Communicator& world;
  const SignalGuard& signals;
  SharedInputs& inputs;
  bool keeps_inputs;  // other runs of this process use them

  bool leads() const { return world.rank() == 0; }
  bool reads() const { return world.local_rank() == 0; }  // one process of each host reads the data
};

// The state of --output. Only rank 0 sets more than `finished` and `label_order`.
struct Output {
  std::unique_ptr<RunDirectory> directory;  // with --resume
  bool finished = false;
  std::vector<Assertion> assertions;  // of a finished run
  std::optional<FoundCheckpoint> found;
  std::vector<std::string> adopted;      // names of options taken from the checkpoint
  std::vector<std::string> label_order;  // the checkpoint's labels
};

struct ChosenMachine {
  Machine machine;
  std::unique_ptr<Backend> backend;
  std::vector<std::string> remarks;  // for the log
};

// The model's files, and its weights if this process reads them.
struct OpenModel {
  ModelFiles files;
  std::unique_ptr<WeightSource> source;
};

// What this process read. Ranks other than 0 have a task if they read the data for their host; they
// never have assertions or tokenizer files.
struct Reading {
  OpenModel model;
  Inputs inputs;
  std::vector<Assertion> assertions;
  std::string best_metric;
};

// One process of each host reads while the others wait, so it also uses their cores. Collective.
Reading read_data_and_model(const Context& context, const ChosenMachine& chosen,
                            const TrainOptions& options, const Output& output);

// Starts to compute the SHA-256 of the inputs' files.
void start_sums(const Context& context, const OpenModel& model, Inputs& inputs);

// Rank 0: checks that a finished run was trained on these data and this model, since its metrics
// are valid for no others.
void compare_finished(const Context& context, const TrainOptions& options,
                      const RunDirectory& directory);

}  // namespace finetune
