// A fine-tuned model, opened for evaluation or prediction.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "distributed/device/layout_peers.h"
#include "distributed/layout/layout_groups.h"
#include "engine/engine.h"
#include "inference/replica_stages.h"
#include "tasks/registry.h"

namespace finetune {

// Options that evaluate and predict share with train; what is not given comes from the training run
// (the object `finetune` in the model's config.json), else from train's defaults.
struct InferenceOptions {
  std::string model;
  std::optional<std::vector<std::string>> text_columns;
  std::optional<std::string> text_pair_column;
  std::optional<std::string> label_column;
  std::optional<int64_t> max_length;
  std::optional<std::string> long_text;  // cut, windows
  std::optional<int64_t> window_stride;
  std::optional<int64_t> max_windows;
  std::optional<int64_t> doc_stride;
  std::optional<std::string> squad_version;  // auto, 1, 2
  int64_t batch_size = 0;                    // most sequences computed at once; 0: by tokens alone
  std::string precision = "auto";
  std::string device = "auto";
  int64_t threads = 0;
  bool no_calibration = false;           // the model's own probabilities
  bool no_ngram_mix = false;             // the model without the n-grams beside it
  bool sum_weights = false;              // FineTuned::weights_sha256 is wanted
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
  std::unique_ptr<LayoutGroups> groups;
  std::unique_ptr<TensorSum> tensor_sum;  // with other tensor ranks; null where there are none
  std::unique_ptr<Engine> engine;
  std::unique_ptr<LayoutPeers> peers;  // with devices of their own; null: replicas alone
  std::unique_ptr<ReplicaStages> stages;
  int64_t micro_batch_tokens = 0;
  std::vector<std::string> layout;  // for the log; empty where replicas are single processes
  std::string weights_sha256;       // rank 0's, of the whole model in f32; empty unless asked for
};

// Error(usage) for an option (without dashes) that is for another task than the model's.
void require_option_of(TaskKind kind, std::string_view option, const std::string& model);

// Which task the model was trained for: its config says, or its weights. Error(model) for a model
// without a trained head, Error(usage) for options that cannot be.
FineTuned open_fine_tuned(const InferenceOptions& options);
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
