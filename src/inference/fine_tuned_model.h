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

// The options of evaluate and predict that concern the model and the machine.
struct InferenceOptions {
  std::string model;
  std::optional<int64_t> batch_size;  // most sequences computed at once; none: only tokens limit it
  std::string precision = "auto";
  std::string device = "auto";
  int64_t threads = 0;                   // 0: all cores
  bool no_calibration = false;           // the model's own probabilities
  bool no_ngram_mix = false;             // the model without its n-gram model
  bool sum_weights = false;              // compute FineTuned::weights_sum
  std::optional<int64_t> tensor_shards;  // V; none: the number of tensor ranks
  std::optional<int64_t> tp;             // tensor ranks; none: 1
  std::optional<int64_t> pp;             // pipeline stages; none: 1
  std::string placement = "cluster";
  std::string stages = "auto";
  double comm_timeout = 600;  // seconds that a process waits for another; 0: no limit
};

// Arranges the processes as replicas, stages and tensor ranks. Error(usage): they do not fit.
Layout layout_of(const InferenceOptions& options, int processes);
// The number of shards of each layer. It decides on the order of sums, so on bits of the results.
int64_t tensor_shards_of(const InferenceOptions& options);

struct FineTuned {
  TaskModel of_task() const { return {*model.tokenizer, model.config, true}; }

  ModelFiles model;
  TaskKind kind = TaskKind::classification;
  TaskOptions options;  // without files
  std::unique_ptr<EarlyBackend> early_backend;
  std::unique_ptr<LayoutGroups> groups;
  std::unique_ptr<TensorSum> tensor_sum;  // over the tensor ranks; null if there is one
  std::unique_ptr<Engine> engine;
  std::unique_ptr<LayoutPeers> peers;  // null if each process is a whole replica
  std::unique_ptr<ReplicaStages> stages;
  int64_t micro_batch_tokens = 0;
  std::vector<std::string> layout;          // log lines; empty if each process is a whole replica
  std::unique_ptr<WeightsSum> weights_sum;  // of the whole model, on rank 0, if sum_weights

  std::string weights_sha256() { return weights_sum ? weights_sum->hex() : ""; }
};

// Replaces options that the model was trained with by those that the user gives.
using TakeGiven = std::function<void(TaskKind task, TaskOptions& trained)>;

// Collective, the first step of a command: checks the layout and that all processes have the same
// options (`given`: see equal_processes.h); rank 0 calls `open`. All throw what `open` throws.
void begin_inference(Communicator& comm, const InferenceOptions& options, std::string_view given,
                     const std::function<void()>& open);

// Finds the task that the model was trained for, in its config or by its weights. Error(model) for
// a model without a trained head; errors of `take_given` pass through.
FineTuned open_fine_tuned(const InferenceOptions& options, const TakeGiven& take_given);
// Loads the weights for `head` and allocates buffers; call it after checking the data. Collective:
// rank 0 calls load_fine_tuned, computes with a BatchDispatcher of engine and stages, and ends with
// its done() and end_inference(). The other processes call serve_inference, which returns then. On
// each host one process reads each part of the model from the file. Error(usage): the layout does
// not fit the model.
void load_fine_tuned(FineTuned& model, const InferenceOptions& options, Head head,
                     int64_t max_length, Communicator& comm);
void end_inference(FineTuned& model);  // after the last computation
void serve_inference(const InferenceOptions& options, Communicator& comm);

}  // namespace finetune
