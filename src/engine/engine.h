// A model on a device: backend, weights and buffers, for training, evaluation and prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/numeric/packed_batch.h"
#include "data/plan.h"
#include "model/encoder.h"
#include "ops/backend.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_directory.h"

namespace finetune {

// "cpu" or "cuda", of --device auto|cpu|cuda: auto is the GPU where this program can use one.
// `unused`, if not null, says why a GPU that seems to be there is not chosen, else it is empty.
std::string resolved_device(std::string_view device, std::string* unused = nullptr);
// Whether it can become "cuda". Loads and starts nothing: for who forks, since a GPU that a process
// has used is of no use to its children.
bool may_be_on_gpu(std::string_view device);

// Of a resolved --device, --threads (0: all cores) and --precision auto|fp32|bf16, where auto is
// bf16 if the device multiplies it fast. Processes of a host take its GPUs in turn, by
// `local_rank`. Error(device) for a GPU that is not there.
std::unique_ptr<Backend> make_backend(std::string_view device, int64_t threads,
                                      std::string_view precision, int local_rank = 0);
bool multiplies_bf16_fast(std::string_view device);

// What a model directory holds besides the weights. Error(model) if the vocabulary does not fit
// the embedding.
struct ModelFiles {
  ModelDirectory directory;
  EncoderConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
};
// Without `need_weights` it has none, also where the directory has some.
ModelFiles open_model(const std::string& path, bool need_weights = true);
ModelFiles open_model_config(const std::string& path, bool need_weights);  // without tokenizer

// --micro-batch-tokens auto: a fixed function of the model's shape, the longest input and, on a
// device with memory of its own, the size of that (`device_bytes`, as least_device_bytes has it;
// else 0). Never of free memory or the number of processes, since equal values give equal bits.
int64_t auto_micro_batch_tokens(const EncoderConfig& config, int64_t max_length,
                                int64_t device_bytes);

// Bytes of activations within which training on such a device keeps results of the activation
// function (Encoder::reserve): as many as auto_micro_batch_tokens aims at, where weights, gradients
// and moments leave them. 0: never.
int64_t kept_activation_bytes(int64_t weight_bytes, int64_t device_bytes);

// The same for evaluation and prediction, which on some backends take more than training.
int64_t evaluation_tokens(const Backend& backend, const EncoderConfig& config,
                          int64_t micro_batch_tokens, int64_t tensor_shards = 1);

// What is kept of the logits of a scored token: the cross entropy of its target, and how many words
// are before that in the order of the logits, equal ones by their ids.
struct ScoredToken {
  float loss = 0;
  float rank = 0;
};
// Floats that inference gives of a micro-batch.
int64_t logit_floats(Head head, const PackedBatch& batch);

// Weights that nothing changes are held as the backend likes them (Backend::weight_type).
enum class WeightUse { training, inference };

class Engine {
 public:
  static constexpr int64_t kEvaluationSequences = 512;

  // Collective on the host, whose processes share the weights, but on devices of their own. It
  // computes the whole model, or a part of it. `sum`: over tensor shards, where others have some of
  // them; must outlive the engine.
  Engine(std::unique_ptr<Backend> backend, const EncoderConfig& config, Head head,
         Communicator& comm, WeightUse use = WeightUse::training);
  Engine(std::unique_ptr<Backend> backend, const EncoderConfig& config, Head head,
         Communicator& comm, const ModelPart& part, TensorSum* sum = nullptr,
         WeightUse use = WeightUse::training);

  Backend& backend() { return *backend_; }
  const EncoderConfig& config() const { return config_; }
  const ParameterTable& table() const { return table_; }
  const ModelPart& part() const { return part_; }
  Encoder& encoder() { return encoder_; }
  // Backend memory, to read and to write. Whoever trains may keep updates back until somebody asks
  // for the weights: then on_weights_wanted's function is called to make them complete.
  float* weights() {
    if (complete_weights_) complete_weights_();
    backend_->forget_packed();
    return weights_as_they_are();
  }
  // The same where the program can read them: backend memory itself, or a copy.
  std::shared_ptr<const float> weights_on_host();
  // fill(arena) writes all weights.
  void set_weights(const std::function<void(float*)>& fill);
  // Collective, after rank 0 has set all weights: to every process that has a copy on its device.
  void share_weights(Communicator& comm);
  float* weights_as_they_are() { return static_cast<float*>(weights_.get()); }
  void on_weights_wanted(std::function<void()> complete) {
    complete_weights_ = std::move(complete);
  }

  // Buffers for micro-batches of up to these sizes. Once. Those of training are as they are
  // computed (reserved_size), those of inference as infer() gets them. `slots`: of training
  // micro-batches between their forward and their backward pass (Encoder::reserve).
  // `horizon`: of inputs that wait in memory of the host; 0: none.
  void reserve(BatchSize training, BatchSize inference, bool recompute = false, int64_t slots = 1,
               int64_t horizon = 0);
  int64_t slots() const { return int64_t(batches_.size()); }
  // To the batch of a slot, which has it until the next upload there.
  DeviceBatch& upload(const PackedBatch& batch, float loss_scale = 1, int64_t slot = 0);
  DeviceBatch& batch(int64_t slot);

  // Logits of a micro-batch without dropout, copied to the host: (B, outputs) or (T, outputs), of a
  // masked head in their place ScoredToken (M). On a backend that replays work, sequences that fill
  // it up are computed beside its own.
  void infer(const PackedBatch& batch, std::vector<float>& logits);
  // The same of a part of the model, chunk by chunk: the micro-batch as it is computed, the pass
  // from Encoder::input_of() to output_of() in ChunkSlot::kInference, and, after that of a chunk
  // with the head, the logits.
  const DeviceBatch& upload_for_inference(const PackedBatch& batch);
  void infer_chunk(int64_t chunk, const DeviceBatch& batch);
  void append_logits(const PackedBatch& batch, const DeviceBatch& computed,
                     std::vector<float>& logits);
  // The most that reserve() has made room for, as it is computed.
  BatchSize inference_size() const { return inference_size_; }

  // Backend::replay of work with passes of the model in a slot, where those may be.
  void replay(int64_t slot, std::span<const int64_t> key, const std::function<void()>& work);

  // Most sequences of one micro-batch without gradients; 0: the default.
  void set_evaluation_sequences(int64_t count);
  int64_t evaluation_sequences() const { return evaluation_sequences_; }

 private:
  const PackedBatch& filled(const PackedBatch& batch);
  void score(const PackedBatch& batch, const DeviceBatch& computed, Tensor logits, float* out);

  std::unique_ptr<Backend> backend_;
  EncoderConfig config_;
  ModelPart part_;
  ParameterTable table_;
  std::shared_ptr<void> weights_;
  std::function<void()> complete_weights_;
  Encoder encoder_;
  std::vector<DeviceBatch> batches_;  // of each slot; inference has the first
  PackedBatch filled_;
  std::shared_ptr<void> losses_;  // (1, most tokens), of a masked head
  std::vector<float> host_logits_;
  BatchSize inference_size_;
  int64_t evaluation_sequences_ = kEvaluationSequences;
};

// The largest micro-batch that samples with these lengths can need.
using MicroBatchLimits = BatchSize;
// `most_sequences`: of what is cut into micro-batches (a shard, or one micro-batch).
MicroBatchLimits micro_batch_limits(const SampleView& samples, const MicroBatching& cut,
                                    int64_t most_sequences);
// What micro-batches within such limits take on this backend: some fill them up.
BatchSize reserved_size(const Backend& backend, BatchSize limits);

}  // namespace finetune
