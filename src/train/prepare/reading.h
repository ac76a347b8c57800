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

// What every step of the preparation works with.
struct Context {
  Communicator& world;
  const SignalGuard& signals;
  SharedInputs& inputs;
  bool keeps_inputs;  // for other runs of this process

  bool leads() const { return world.rank() == 0; }
  bool reads() const { return world.local_rank() == 0; }  // one process of each host reads the data
};

// The state of --output. Rank 0 alone has more than `finished` and `label_order`.
struct Output {
  std::unique_ptr<RunDirectory> directory;  // with --resume
  bool finished = false;
  std::vector<Assertion> assertions;  // of a finished run
  std::optional<FoundCheckpoint> found;
  std::vector<std::string> adopted;      // names of the options that come from the checkpoint
  std::vector<std::string> label_order;  // the checkpoint's labels
};

struct ChosenMachine {
  Machine machine;
  std::unique_ptr<Backend> backend;
  std::vector<std::string> remarks;  // for the log
};

// The model's files, and its weights where this process reads them.
struct OpenModel {
  ModelFiles files;
  std::unique_ptr<WeightSource> source;
};

// What this process read. Other processes than rank 0 have a task where they read the data for
// their host, and neither assertions nor tokenizer files.
struct Reading {
  OpenModel model;
  Inputs inputs;
  std::vector<Assertion> assertions;
  std::string best_metric;
};

// One process of each host reads while the others wait, so it reads with their cores too.
// Collective.
Reading read_data_and_model(const Context& context, const ChosenMachine& chosen,
                            const TrainOptions& options, const Output& output);

// Starts the sums of the inputs' files.
void start_sums(const Context& context, const OpenModel& model, Inputs& inputs);

// Checks that a finished run was trained on these data and this model: its metrics hold for no
// others. Of rank 0.
void compare_finished(const Context& context, const TrainOptions& options,
                      const RunDirectory& directory);

}  // namespace finetune
