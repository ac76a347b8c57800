// BERT (Devlin et al., 2018) with a head, forward and backward, over packed tokens. Written once
// against ops/backend.h. Semantics: Hugging Face's modeling_bert, post-LayerNorm, exact GELU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/numeric/packed_batch.h"
#include "model/config.h"
#include "model/parameters.h"
#include "ops/backend.h"

namespace finetune {

// A PackedBatch in the backend's memory. Buffers are allocated once for the largest micro-batch.
class DeviceBatch {
 public:
  DeviceBatch(Backend& backend, int64_t max_tokens, int64_t max_sequences);
  // loss_scale: of every sample; fillers have 0.
  void upload(const PackedBatch& batch, float loss_scale = 1);

  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return sequences_; }
  const int32_t* ids() const;
  const int32_t* types() const;
  const uint32_t* positions() const;
  const int32_t* order() const;
  const int32_t* first_rows() const;  // (B) row of each sequence's first token
  Segments segments() const;          // all tokens
  Segments first_segments() const;    // one row per sequence: offsets 0, 1, ..., B
  const uint32_t* samples() const;    // (B)
  RowNames token_names() const;       // (T)
  RowNames first_names() const;       // (B) position 0
  LossScale loss_scale() const;       // (B)

 private:
  const uint32_t* token_array(int64_t index) const;
  const uint32_t* sequence_array(int64_t index) const;

  Backend& backend_;
  std::shared_ptr<void> memory_;
  std::vector<uint32_t> host_;  // what is uploaded, in one piece
  int64_t max_tokens_, max_sequences_;
  int64_t tokens_ = 0, sequences_ = 0, max_length_ = 0;
};

// Dropout of one step: which masks, and how strong. Probabilities 0 switch it off.
struct DropoutPlan {
  uint64_t seed = 0;
  uint32_t step = 0;
  double hidden = 0;
  double attention = 0;
  double head = 0;
  // Backend memory with what dropout_streams made of seed and step, which are not read then; null:
  // they are.
  const DropoutStream* streams = nullptr;
};
// One for each use of dropout in such a model.
std::vector<DropoutStream> dropout_streams(const BertConfig& config, uint64_t seed, uint32_t step);

// Of a micro-batch; zeros: there is none.
struct BatchSize {
  int64_t tokens = 0;
  int64_t sequences = 0;
};

// Whether inference computes whole layers (Backend::has_layer), in two small buffers.
bool has_whole_layers(const Backend& backend, const BertConfig& config);

class Bert {
 public:
  Bert(Backend& backend, const BertConfig& config, const ParameterTable& table);
  ~Bert();

  // Bytes of activations for a micro-batch of T tokens in B sequences, as reserve() allocates them.
  // Training keeps what the backward pass needs, and has room for inference as well; with
  // `recompute` it keeps the layers' inputs, and the backward pass computes the rest again: the
  // same bits, since dropout has no state.
  int64_t activation_bytes(int64_t tokens, int64_t sequences, bool training,
                           bool recompute = false) const;
  // Allocates for micro-batches up to this size, in place of what was reserved before.
  void reserve(int64_t max_tokens, int64_t max_sequences, bool training, bool recompute = false) {
    reserve(training ? BatchSize{max_tokens, max_sequences} : BatchSize{},
            {max_tokens, max_sequences}, recompute);
  }
  // The same with a size of its own for inference, besides that of training.
  void reserve(BatchSize training, BatchSize inference, bool recompute);

  // Logits: (B, outputs) for a sequence head, (T, outputs) for a token head; valid until the next
  // call of forward or backward.
  // `weights` is an arena of the table. With `dropout` null no dropout is applied; with
  // `keep_for_backward` false nothing is kept.
  Tensor forward(const DeviceBatch& batch, float* weights, const DropoutPlan* dropout,
                 bool keep_for_backward);
  // Where forward(batch, weights, nullptr, false) puts them, for who had it replayed.
  Tensor inferred_logits(const DeviceBatch& batch) const;
  // Adds the gradients of the last forward (kept, same batch, weights and dropout) to `gradients`.
  // dlogits may be the logits' own memory. `lowest_layer`: layers below it are frozen and get no
  // gradient (0: embeddings too, l: encoder layer l and above, L+1: the head alone).
  // With `accumulate` false they overwrite what is there, except in the word embedding, which is
  // always added to. `ready`, where given, is called with each layer (Parameter::layer) that gets a
  // gradient, from the head down, when the work that computes the last of it is under way.
  void backward(const DeviceBatch& batch, float* weights, float* gradients, Tensor dlogits,
                const DropoutPlan* dropout, int lowest_layer = 0, bool accumulate = true,
                const std::function<void(int)>& ready = {});

  // For tests: hidden state after the embeddings (0) or layer i (1..L) of the last kept forward,
  // (T, H); of the last layer of a sequence head (B, H), first tokens alone.
  Tensor hidden_state(int64_t i) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace finetune
