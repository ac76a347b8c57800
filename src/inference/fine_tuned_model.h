// A fine-tuned model, opened for evaluation or prediction.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "distributed/layout/layout_groups.h"
#include "engine/engine.h"
#include "inference/overlap/early_backend.h"
#include "inference/overlap/weights_sum.h"
#include "inference/replica_stages.h"
#include "tasks/registry.h"

namespace finetune {

// What a model and the machine need of the options of evaluate and predict.
struct InferenceOptions {
  std::string model;
  std::optional<int64_t> batch_size;  // most sequences computed at once; none: by tokens alone
  std::string precision = "auto";
  std::string device = "auto";
  int64_t threads = 0;                   // 0: all cores
  bool no_calibration = false;           // the model's own probabilities
  bool no_ngram_mix = false;             // the model without the n-grams beside it
  bool sum_weights = false;              // FineTuned::weights_sum is wanted
  std::optional<int64_t> tensor_shards;  // V; none: the tensor ranks
  std::optional<int64_t> tp;             // tensor ranks; none: 1
  std::optional<int64_t> pp;             // pipeline stages; none: 1
  std::string placement = "cluster";
  std::string stages = "auto";
  double comm_timeout = 600;  // seconds that a process waits for another; 0: for ever
};

// Replicas, stages and tensor ranks of so many processes. Error(usage), naming the numbers.
Layout layout_of(const InferenceOptions& options, int processes);
// Of each layer, part of the result.
int64_t tensor_shards_of(const InferenceOptions& options);

struct FineTuned {
  TaskModel of_task() const { return {*model.tokenizer, model.config, true}; }

  ModelFiles model;
  TaskKind kind = TaskKind::classification;
  TaskOptions options;  // without files
  std::unique_ptr<EarlyBackend> early_backend;
  std::unique_ptr<LayoutGroups> groups;
  std::unique_ptr<TensorSum> tensor_sum;  // with other tensor ranks; null where there are none
  std::unique_ptr<Engine> engine;
  std::unique_ptr<LayoutPeers> peers;  // with devices of their own; null: replicas alone
  std::unique_ptr<ReplicaStages> stages;
  int64_t micro_batch_tokens = 0;
  std::vector<std::string> layout;  // for the log; empty where replicas are single processes
  std::unique_ptr<WeightsSum> weights_sum;  // rank 0's, of the whole model, if it was asked for

  std::string weights_sha256() { return weights_sum ? weights_sum->hex() : ""; }
};

// Changes the options that a model was trained with to those that the user gives.
using TakeGiven = std::function<void(TaskKind task, TaskOptions& trained)>;

// Collective, the first step of a command: the processes agree on the layout and on what they were
// given (`given`: see equal_processes.h), and rank 0 calls `open`. All throw what it throws.
void begin_inference(Communicator& comm, const InferenceOptions& options, std::string_view given,
                     const std::function<void()>& open);

// Finds the task that the model was trained for, in its config or by its weights. Error(model) for
// a model without a trained head; errors of `take_given` pass through.
FineTuned open_fine_tuned(const InferenceOptions& options, const TakeGiven& take_given);
// Loads the weights for `head` and makes room; after the data have been checked. Collective: rank 0
// calls load_fine_tuned, computes with a BatchDispatcher of engine and stages and ends with its
// done() and end_inference(); the others are served by serve_inference until then. Of the processes
// of a host that have one part of the model one reads it from the file. Error(usage) for a layout
// that does not fit the model.
void load_fine_tuned(FineTuned& model, const InferenceOptions& options, Head head,
                     int64_t max_length, Communicator& comm);
void end_inference(FineTuned& model);  // nothing is computed any more
void serve_inference(const InferenceOptions& options, Communicator& comm);

}  // namespace finetune
