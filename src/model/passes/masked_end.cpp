// Forward and backward pass of the head for masked words.
#include "model/passes/ends.h"

namespace finetune {
namespace {

Activation activation_of(const EncoderConfig& config) {
  if (config.head.masked_alike) return config.head.activation;
  return config.head.masked_gelu ? Activation::gelu : config.hidden_act;
}

}  // namespace

MaskedEnd::MaskedEnd(const ParameterTable& table) {
  auto weight = [&](Role role) { return slot_of(table, role, ParameterPart::weight); };
  auto bias = [&](Role role) { return slot_of(table, role, ParameterPart::bias); };
  word_ = weight(Role::word_embeddings);
  decoder_bias_ = bias(Role::masked_decoder);
  gamma_ = weight(Role::masked_norm);
  beta_ = bias(Role::masked_norm);
  weight_ = weight(Role::masked_transform);
  bias_ = bias(Role::masked_transform);
}

void MaskedEnd::forward(const EndPass& pass, Tensor encoded) const {
  Backend& backend = pass.backend;
  float* weights = pass.weights;
  const ActivationPlan& plan = pass.plan;
  const int64_t m = pass.batch.scored(), h = pass.config.hidden_size;
  const int64_t e = pass.config.embedding_size();
  if (m == 0) return;
  Tensor scored = pass.at(plan.scored, m, h), transformed = pass.at(plan.transformed, m, e);
  Tensor sum = pass.at(plan.scored_sum, m, e), states = pass.at(plan.scored_states, m, e);
  backend.gather_rows(encoded, pass.batch.scored_rows(), scored);
  backend.linear(scored, weight_.in(weights), bias_.in(weights), transformed);
  backend.activation(activation_of(pass.config), transformed, sum);
  backend.add_layer_norm(sum, {}, {}, {}, gamma_.in(weights), beta_.in(weights),
                         float(pass.config.layer_norm_eps), sum, pass.at(plan.scored_stats, m, 2),
                         states);
  backend.linear(states, word_.in(weights), decoder_bias_.in(weights),
                 pass.at(plan.logits, m, word_.rows));
}

// Sets the gradients of the head's own tensors to zero, for a micro-batch without scored tokens.
void MaskedEnd::clear(const EndPass& pass, float* arena) const {
  for (const Slot& slot : {decoder_bias_, gamma_, beta_, weight_, bias_}) {
    if (Tensor gradient = slot.in(arena)) pass.backend.fill_zero(gradient);
  }
}

// The word embedding's gradient is always added, since the embeddings add theirs, too
// (Encoder::backward). The gradient of the scored rows overwrites the rows.
void MaskedEnd::backward(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                         bool accumulate) const {
  Backend& backend = pass.backend;
  float* weights = pass.weights;
  const ActivationPlan& plan = pass.plan;
  const int64_t m = pass.batch.scored(), h = pass.config.hidden_size;
  const int64_t e = pass.config.embedding_size();
  FINETUNE_CHECK(dencoder && dlogits.rows == m);
  backend.fill_zero(dencoder);
  if (Tensor bias = decoder_bias_.in(arena); bias && !accumulate) backend.fill_zero(bias);
  if (m == 0) return accumulate ? void() : clear(pass, arena);
  Tensor scored = pass.at(plan.scored, m, h), sum = pass.at(plan.scored_sum, m, e);
  Tensor dstates = pass.at(plan.branch_gradient, m, e);
  backend.linear_backward_input(dlogits, word_.in(weights), dstates, false);
  backend.linear_backward_weight(dlogits, pass.at(plan.scored_states, m, e), word_.in(arena),
                                 decoder_bias_.in(arena), true);
  backend.add_layer_norm_backward(dstates, sum, pass.at(plan.scored_stats, m, 2),
                                  gamma_.in(weights), {}, {}, dstates, {}, gamma_.in(arena),
                                  beta_.in(arena), accumulate);
  backend.activation_backward(activation_of(pass.config), pass.at(plan.transformed, m, e), dstates,
                              dstates, {});
  backend.linear_backward_weight(dstates, scored, weight_.in(arena), bias_.in(arena), accumulate);
  backend.linear_backward_input(dstates, weight_.in(weights), scored, false);
  backend.scatter_rows(scored, pass.batch.scored_rows(), dencoder);
}

}  // namespace finetune
