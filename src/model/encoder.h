// BERT (Devlin et al., 2018) with a head, forward and backward, over packed tokens. Written once
// against ops/backend.h. Semantics: Hugging Face's modeling_bert, post-LayerNorm, exact GELU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "model/config.h"
#include "model/device_batch.h"
#include "model/model_part.h"
#include "model/parameters.h"
#include "model/passes/dropout_sites.h"
#include "model/tensor_sum.h"
#include "ops/backend.h"

namespace finetune {

// The size of a micro-batch; zeros: there is none.
struct BatchSize {
  int64_t tokens = 0;
  int64_t sequences = 0;
};

// Names a pass of a part of the model: its chunk, and the slot that keeps its results for the
// backward pass over the same micro-batch. A slot holds one chunk's pass at a time.
struct ChunkSlot {
  static constexpr int64_t kInference = -1;  // nothing is kept

  int64_t chunk = 0;
  int64_t slot = 0;
};

class Encoder {
 public:
  // Computes the layers that `table` covers, or only `part` of them. `sum` adds partial sums across
  // processes: pass it if other processes hold tensor shards. It must outlive this.
  Encoder(Backend& backend, const EncoderConfig& config, const ParameterTable& table);
  Encoder(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
          const ModelPart& part, TensorSum* sum = nullptr);
  ~Encoder();

  // Bytes of activations for a micro-batch of T tokens in B sequences, as reserve() allocates them.
  // Training keeps what the backward pass needs, for `slots` micro-batches, and has room for
  // inference as well; with `recompute` it keeps the layers' inputs, and the backward pass computes
  // the rest again: the same bits, since dropout has no state.
  // With `horizon`, which needs a device and `recompute`, these inputs wait in memory of the host
  // and are back `horizon` layers before the backward pass needs them: the same bits, but passes of
  // training cannot be replayed.
  // Kept results of the activation function count only after reserve() has decided to keep them.
  int64_t activation_bytes(int64_t tokens, int64_t sequences, bool training, bool recompute = false,
                           int64_t slots = 1, int64_t horizon = 0) const;
  // Allocates for micro-batches up to this size, in place of what was reserved before.
  void reserve(int64_t max_tokens, int64_t max_sequences, bool training, bool recompute = false,
               int64_t slots = 1) {
    reserve(training ? BatchSize{max_tokens, max_sequences} : BatchSize{},
            {max_tokens, max_sequences}, recompute, slots);
  }
  // The same with different sizes for training and inference. Training keeps the results of the
  // activation function if its block then has at most `kept_bytes`
  // (ActivationPlan::keeps_activated).
  void reserve(BatchSize training, BatchSize inference, bool recompute, int64_t slots = 1,
               int64_t horizon = 0, int64_t kept_bytes = 0);
  int64_t offloaded_bytes() const;  // memory of the host for inputs that wait there

  // The whole model's passes, in slot 0.
  //
  // Logits: (B, outputs) for a sequence head, (T, outputs) for a token head, (M, words) for a
  // masked one; valid until the next call of forward or backward. `weights` is an arena of the
  // table. With `dropout` null no dropout is applied; with `keep_for_backward` false nothing is
  // kept.
  Tensor forward(const DeviceBatch& batch, float* weights, const DropoutPlan* dropout,
                 bool keep_for_backward);
  // Adds the gradients of the last forward (kept, same batch, weights and dropout) to `gradients`.
  // dlogits may be the logits' own memory. `lowest_layer`: layers below it are frozen and get no
  // gradient (0: embeddings too, l: encoder layer l and above, L+1: the head alone).
  // With `accumulate` false gradients overwrite old values, except those of the word embedding,
  // which are always added. `ready`, if given, is called with each layer (Parameter::layer) that
  // gets a gradient, from the head down, once all work that computes its gradient is enqueued.
  void backward(const DeviceBatch& batch, float* weights, float* gradients, Tensor dlogits,
                const DropoutPlan* dropout, int lowest_layer = 0, bool accumulate = true,
                const std::function<void(int)>& ready = {});

  // A part's passes, chunk by chunk. Chunks exchange (T, H) of f32 and carried_rows() more rows.
  // Before forward(), write the input of a chunk without embeddings to input_of(); in training call
  // make_room_for_input() before that. Afterwards output_of() has the output; for a chunk with the
  // head it has the logits. An output without a head is valid until the next pass, all others until
  // another pass uses the slot. Before backward() of a chunk without head, write the gradient of
  // its output to gradient_of_output(). Afterwards gradient_of_input() has the gradient of its
  // input, if passes_gradient_on() is true. Both are the same memory, valid until the next
  // backward().
  void make_room_for_input(ChunkSlot at, const DeviceBatch& batch);
  Tensor input_of(ChunkSlot at, const DeviceBatch& batch) const;
  Tensor output_of(ChunkSlot at, const DeviceBatch& batch) const;
  Tensor gradient_of_output(ChunkSlot at, const DeviceBatch& batch) const;
  Tensor gradient_of_input(ChunkSlot at, const DeviceBatch& batch) const {
    return gradient_of_output(at, batch);
  }
  void forward(ChunkSlot at, const DeviceBatch& batch, float* weights, const DropoutPlan* dropout);
  // The backward pass of the forward pass in the slot. dlogits: only for a chunk with the head.
  void backward(ChunkSlot at, const DeviceBatch& batch, float* weights, float* gradients,
                Tensor dlogits, const DropoutPlan* dropout, int lowest_layer = 0,
                bool accumulate = true, const std::function<void(int)>& ready = {});
  // Whether anything in the chunk is trained, and whether anything below it is.
  bool has_backward(int64_t chunk, int lowest_layer) const;
  bool passes_gradient_on(int64_t chunk, int lowest_layer) const;
  // Whether passes in the slot may be part of work that is replayed (Backend::replay).
  bool may_be_replayed(int64_t slot) const;
  bool has_head(int64_t chunk) const;
  bool has_embeddings(int64_t chunk) const;

  // For tests: hidden state after the embeddings (0) or layer i (1..L) of the last kept forward of
  // a whole model, (T, H); of the last layer of a sequence head (B, H), first tokens alone.
  Tensor hidden_state(int64_t i) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace finetune
