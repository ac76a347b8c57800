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

// Of a micro-batch; zeros: there is none.
struct BatchSize {
  int64_t tokens = 0;
  int64_t sequences = 0;
};

// Which pass of a part of the model: over which of its chunks, and in which slot it keeps what the
// backward pass over the same micro-batch needs. A slot holds one chunk's pass at a time.
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
  // With `horizon`, on a device and with `recompute` alone, these inputs wait in memory of the
  // host: in a backward pass they are back so many layers before they are needed. The same bits;
  // then no pass of training may be replayed.
  // Until reserve() has chosen, kept results of the activation function are not counted.
  int64_t activation_bytes(int64_t tokens, int64_t sequences, bool training, bool recompute = false,
                           int64_t slots = 1, int64_t horizon = 0) const;
  // Allocates for micro-batches up to this size, in place of what was reserved before.
  void reserve(int64_t max_tokens, int64_t max_sequences, bool training, bool recompute = false,
               int64_t slots = 1) {
    reserve(training ? BatchSize{max_tokens, max_sequences} : BatchSize{},
            {max_tokens, max_sequences}, recompute, slots);
  }
  // The same with a size of its own for inference, besides that of training. Training keeps the
  // results of the activation function where it takes at most `kept_bytes`
  // (ActivationPlan::keeps_activated).
  void reserve(BatchSize training, BatchSize inference, bool recompute, int64_t slots = 1,
               int64_t horizon = 0, int64_t kept_bytes = 0);
  int64_t offloaded_bytes() const;  // of the host, where inputs wait there

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
  // With `accumulate` false they overwrite what is there, except in the word embedding, which is
  // always added to. `ready`, where given, is called with each layer (Parameter::layer) that gets a
  // gradient, from the head down, when the work that computes the last of it is under way.
  void backward(const DeviceBatch& batch, float* weights, float* gradients, Tensor dlogits,
                const DropoutPlan* dropout, int lowest_layer = 0, bool accumulate = true,
                const std::function<void(int)>& ready = {});

  // A part's passes, chunk by chunk. Between chunks go (T, H) of f32, with carried_rows() more.
  // Before forward() the chunk's input lies in input_of(), unless the chunk has the embeddings;
  // make_room_for_input() comes before it is written there, but for inference. Afterwards
  // output_of() has its output, which for a chunk with the head is the logits. An output without a
  // head is valid until the next pass, the rest until another pass takes the slot. Before
  // backward() of a chunk without head the gradient of its output lies in gradient_of_output();
  // afterwards gradient_of_input() has that of its input, where passes_gradient_on() says so. Both
  // are one place, valid until the next backward().
  void make_room_for_input(ChunkSlot at, const DeviceBatch& batch);
  Tensor input_of(ChunkSlot at, const DeviceBatch& batch) const;
  Tensor output_of(ChunkSlot at, const DeviceBatch& batch) const;
  Tensor gradient_of_output(ChunkSlot at, const DeviceBatch& batch) const;
  Tensor gradient_of_input(ChunkSlot at, const DeviceBatch& batch) const {
    return gradient_of_output(at, batch);
  }
  void forward(ChunkSlot at, const DeviceBatch& batch, float* weights, const DropoutPlan* dropout);
  // Of the forward pass that is in the slot. dlogits: of a chunk with the head.
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
