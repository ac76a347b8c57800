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

// Resolves --device auto|cpu|cuda to "cpu" or "cuda"; auto is the GPU if this program can use it.
// `unused`, if not null, is set to why a GPU that seems to be there is not chosen, else to "".
std::string resolved_device(std::string_view device, std::string* unused = nullptr);
// Whether `device` may resolve to "cuda". Loads no library and starts no GPU, so that the process
// can still fork: children cannot use a GPU that their parent has used.
bool may_be_on_gpu(std::string_view device);

// Makes the backend for a resolved --device, --threads (0: all cores) and --precision
// auto|fp32|bf16. Precision auto is bf16 if the device multiplies it fast. Processes of a host take
// its GPUs in turn, by `local_rank`. Error(device): the GPU cannot be used.
std::unique_ptr<Backend> make_backend(std::string_view device, int64_t threads,
                                      std::string_view precision, int local_rank = 0);
bool multiplies_bf16_fast(std::string_view device);

// The contents of a model directory except the weights. open_model() throws Error(model) if the
// vocabulary does not fit the embedding.
struct ModelFiles {
  ModelDirectory directory;
  EncoderConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
};
// Without `need_weights` the directory need not have weights.
ModelFiles open_model(const std::string& path, bool need_weights = true);
ModelFiles open_model_config(const std::string& path, bool need_weights);  // without tokenizer

// --micro-batch-tokens auto: a fixed function of the model's shape, the longest input and, on a
// GPU, the size of its memory (`device_bytes`, from least_device_bytes; 0 on a processor). Free
// memory and the number of processes do not matter, so that equal options give equal bits.
int64_t auto_micro_batch_tokens(const EncoderConfig& config, int64_t max_length,
                                int64_t device_bytes);

// In training the results of the activation function are kept for the backward pass if all kept
// and working memory of the model's passes then takes at most this many bytes (Encoder::reserve);
// 0: they are never kept. `device_bytes` is the memory of the device that other programs do not
// use. The limit is what auto_micro_batch_tokens aims at, or less if weights and moments are large.
int64_t kept_activation_bytes(int64_t weight_bytes, int64_t device_bytes);

// The micro-batch tokens of evaluation and prediction: on some backends more than in training.
int64_t evaluation_tokens(const Backend& backend, const EncoderConfig& config,
                          int64_t micro_batch_tokens, int64_t tensor_shards = 1);

// Replaces the logits of a scored token: `loss` is the cross entropy of its target, `rank` the
// number of words with a higher logit than the target (or an equal logit and a smaller id).
struct ScoredToken {
  float loss = 0;
  float rank = 0;
};
// The number of floats that Engine::infer() returns for a micro-batch.
int64_t logit_floats(Head head, const PackedBatch& batch);

// Weights for inference do not change, so they are held in the backend's weight_type().
enum class WeightUse { training, inference };

class Engine {
 public:
  static constexpr int64_t kEvaluationSequences = 512;

  // Collective on the host: its processes share the weights, unless each has its own device. The
  // engine computes the whole model, or only `part`. `sum` adds over tensor shards if other
  // processes have some of them; it must outlive the engine.
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
  // Backend memory, to read and to write. Training may delay updates until somebody asks for the
  // weights; this first calls the function given to on_weights_wanted(), which completes them.
  float* weights() {
    if (complete_weights_) complete_weights_();
    backend_->forget_packed();
    return weights_as_they_are();
  }
  // The weights in memory of the host: backend memory if the host can read it, else a copy.
  std::shared_ptr<const float> weights_on_host();
  // fill(arena) writes all weights.
  void set_weights(const std::function<void(float*)>& fill);
  // Collective, after rank 0 has set all weights: copies them to every other process's device.
  void share_weights(Communicator& comm);
  float* weights_as_they_are() { return static_cast<float*>(weights_.get()); }
  void on_weights_wanted(std::function<void()> complete) {
    complete_weights_ = std::move(complete);
  }

  // Allocates buffers for micro-batches of up to these sizes. `training` counts padding
  // (reserved_size), `inference` is the size that infer() gets. `slots`: the number of training
  // micro-batches between their forward and their backward pass. `recompute` and `horizon`: see
  // Encoder::activation_bytes.
  void reserve(BatchSize training, BatchSize inference, bool recompute = false, int64_t slots = 1,
               int64_t horizon = 0);
  int64_t slots() const { return int64_t(batches_.size()); }
  // Copies a micro-batch to the slot's DeviceBatch, which holds it until the slot's next upload.
  DeviceBatch& upload(const PackedBatch& batch, float loss_scale = 1, int64_t slot = 0);
  DeviceBatch& batch(int64_t slot);

  // Computes a micro-batch without dropout and copies its logits to the host: (B, outputs) or
  // (T, outputs), or M ScoredTokens for a masked head. A backend that replays work also computes
  // padding sequences, whose logits are not copied.
  void infer(const PackedBatch& batch, std::vector<float>& logits);
  // The same for a part of the model, chunk by chunk. The first returns the micro-batch with its
  // padding. The second computes Encoder::output_of() from input_of(), both in
  // ChunkSlot::kInference. The third, called after the chunk with the head, appends the logits.
  const DeviceBatch& upload_for_inference(const PackedBatch& batch);
  void infer_chunk(int64_t chunk, const DeviceBatch& batch);
  void append_logits(const PackedBatch& batch, const DeviceBatch& computed,
                     std::vector<float>& logits);
  // The largest micro-batch for inference that reserve() made room for, with padding.
  BatchSize inference_size() const { return inference_size_; }

  // Runs `work`, which has passes of the model in a slot, by Backend::replay if the slot allows it.
  void replay(int64_t slot, std::span<const int64_t> key, const std::function<void()>& work);

  // The most sequences computed at once in evaluation and prediction; 0: keep the default.
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
  std::vector<DeviceBatch> batches_;  // one for each slot; inference uses the first
  PackedBatch filled_;
  std::shared_ptr<void> losses_;  // (1, most tokens), of a masked head
  std::vector<float> host_logits_;
  BatchSize inference_size_;
  int64_t evaluation_sequences_ = kEvaluationSequences;
};

// The largest micro-batch that samples with these lengths can need.
using MicroBatchLimits = BatchSize;
// `most_sequences`: of the shard, or the one micro-batch, that is cut into micro-batches.
MicroBatchLimits micro_batch_limits(const SampleView& samples, const MicroBatching& cut,
                                    int64_t most_sequences);
// The largest size of micro-batches within these limits on this backend, which may pad them.
BatchSize reserved_size(const Backend& backend, BatchSize limits);

}  // namespace finetune
