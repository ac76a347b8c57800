// The ends of the model: the embeddings below its encoder layers, pooler and head above them.
// A part of a model (model_part.h) may lack either.
#pragma once

#include "model/activations.h"
#include "model/config.h"
#include "model/device_batch.h"
#include "model/encoder_layer.h"
#include "model/parameters.h"
#include "model/passes/dropout_sites.h"
#include "ops/backend.h"

namespace finetune {

// The operands of a pass over an end.
struct EndPass {
  Backend& backend;
  const EncoderConfig& config;
  const DeviceBatch& batch;
  const ActivationPlan& plan;
  const DropoutSites& sites;
  float* memory = nullptr;   // the activation block
  float* weights = nullptr;  // an arena of the table
  // (rows, cols) at `place`, or absent.
  Tensor at(int64_t place, int64_t rows, int64_t cols) const {
    return place == kAbsent ? Tensor{} : matrix(memory + place, rows, cols);
  }
};

class EmbeddingEnd {
 public:
  EmbeddingEnd() = default;  // for a part without embeddings
  EmbeddingEnd(const ParameterTable& table, const EncoderConfig& config);

  // Writes the first layer's input.
  void forward(const EndPass& pass, bool keep) const;
  // Reads plan.gradient and overwrites it. Adds the gradients to `arena`, or writes them there.
  void backward(const EndPass& pass, float* arena, bool accumulate) const;

 private:
  Tensor positions(const EndPass& pass, float* arena) const;
  Tensor below_projection(const EndPass& pass, float* arena, bool accumulate) const;
  void add_table_gradients(const EndPass& pass, Tensor gradient, float* arena) const;

  Slot word_, position_, type_, gamma_, beta_, projection_, projection_bias_;
};

// The head for masked words (Hugging Face's BertLMPredictionHead), only for the M scored tokens.
// Its decoder is the word embedding, whose gradient therefore has a share in every row.
class MaskedEnd {
 public:
  MaskedEnd() = default;
  explicit MaskedEnd(const ParameterTable& table);

  // `encoded` (T, H): the encoder's output.
  void forward(const EndPass& pass, Tensor encoded) const;
  // `dencoder` (T, H) must be given, since the whole model is trained.
  void backward(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                bool accumulate) const;

 private:
  void clear(const EndPass& pass, float* arena) const;

  Slot word_, decoder_bias_, gamma_, beta_, weight_, bias_;
};

class HeadEnd {
 public:
  HeadEnd() = default;  // for a part without head
  explicit HeadEnd(const ParameterTable& table);

  // Writes (B, outputs), (T, outputs) or (M, words) to plan.logits.
  void forward(const EndPass& pass) const;
  // Writes the gradient of the encoder's output to `dencoder` (B or T, H), unless that is absent.
  void backward(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                bool accumulate) const;

 private:
  bool of_sequences() const { return head_.kind == HeadKind::sequence; }
  int64_t rows(const EndPass& pass) const {
    return of_sequences() ? pass.batch.sequences() : pass.batch.tokens();
  }
  RowNames names(const EndPass& pass) const {
    return of_sequences() ? pass.batch.first_names() : pass.batch.token_names();
  }
  // The encoder's output after the norm that follows the last layer, if any.
  Tensor encoded(const EndPass& pass) const;
  // The dense layer's input: the output of each sequence's first token, the mean of each sequence's
  // tokens, or every token's output.
  Tensor dense_input(const EndPass& pass) const;
  // The last layer's input: dense_input() after dropout, dense layer, activation, norm and dropout.
  Tensor dense_features(const EndPass& pass) const;
  // token_features(): the last layer's input if there is no dense layer: the output after dropout.
  bool has_dense() const { return pooler_weight_.rows > 0; }
  Tensor token_features(const EndPass& pass) const;
  // Both write the gradient of encoded() to `dencoder`, unless that is absent.
  void backward_of_dense(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                         bool accumulate) const;
  void backward_of_tokens(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                          bool accumulate) const;

  Head head_;
  Slot pooler_weight_, pooler_bias_, weight_, bias_;
  Slot norm_gamma_, norm_beta_;    // of the head
  Slot final_gamma_, final_beta_;  // after the last layer
  MaskedEnd masked_;               // for a masked head, instead of the head's tensors above
};

}  // namespace finetune
