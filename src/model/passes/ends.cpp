// Forward and backward pass of embeddings, pooler and head.
#include "model/passes/ends.h"

#include <algorithm>

namespace finetune {

EmbeddingEnd::EmbeddingEnd(const ParameterTable& table, const EncoderConfig& config) {
  auto weight = [&](Role role) { return slot_of(table, role, ParameterPart::weight); };
  word_ = weight(Role::word_embeddings);
  position_ = weight(Role::position_embeddings);
  if (config.type_vocab_size > 0) type_ = weight(Role::type_embeddings);
  gamma_ = weight(Role::embedding_norm);
  beta_ = slot_of(table, Role::embedding_norm, ParameterPart::bias);
  if (!config.has_projection()) return;
  projection_ = weight(Role::embedding_projection);
  projection_bias_ = slot_of(table, Role::embedding_projection, ParameterPart::bias);
}

// Rows of the position embedding that the batch's positions can name, the row of position 0 first.
Tensor EmbeddingEnd::positions(const EndPass& pass, float* arena) const {
  const Tensor table = position_.in(arena);
  const int64_t before = pass.batch.first_position();
  const int64_t first = pass.config.embeddings.first_position - before;
  const int64_t longest = pass.batch.segments().max_length + before;
  return table.rows_from(first, std::min(longest, table.rows - first));
}

void EmbeddingEnd::forward(const EndPass& pass, bool keep) const {
  Backend& backend = pass.backend;
  const DeviceBatch& batch = pass.batch;
  const int64_t t = batch.tokens(), e = pass.config.embedding_size();
  const bool projects = pass.config.has_projection();
  Tensor sum = pass.at(pass.plan.embedding_sum, t, e);
  Tensor input = pass.at(pass.plan.layers[0].input, t, pass.config.hidden_size);
  Tensor output = projects ? pass.at(pass.plan.projected, t, e) : input;
  backend.embed(batch.ids(), batch.positions(), batch.types(), word_.in(pass.weights),
                positions(pass, pass.weights), type_.in(pass.weights), sum);
  backend.add_layer_norm(sum, {}, {}, {}, gamma_.in(pass.weights), beta_.in(pass.weights),
                         float(pass.config.layer_norm_eps), keep ? sum : Tensor{},
                         pass.at(pass.plan.embedding_stats, t, 2), output);
  if (Dropout dropout = pass.sites.embeddings(); dropout.on()) {
    backend.dropout(output, dropout, batch.token_names(), output);
  }
  if (!projects) return;
  backend.linear(output, projection_.in(pass.weights), projection_bias_.in(pass.weights), input);
}

// The gradient of the first layer's input becomes that of what LayerNorm and dropout wrote.
Tensor EmbeddingEnd::below_projection(const EndPass& pass, float* arena, bool accumulate) const {
  const int64_t t = pass.batch.tokens(), e = pass.config.embedding_size();
  const Tensor gradient = pass.at(pass.plan.gradient, t, pass.config.hidden_size);
  if (!pass.config.has_projection()) return gradient;
  const Tensor below = pass.at(pass.plan.projected_gradient, t, e);
  pass.backend.linear_backward_input(gradient, projection_.in(pass.weights), below, false);
  pass.backend.linear_backward_weight(gradient, pass.at(pass.plan.projected, t, e),
                                      projection_.in(arena), projection_bias_.in(arena),
                                      accumulate);
  return below;
}

void EmbeddingEnd::backward(const EndPass& pass, float* arena, bool accumulate) const {
  Backend& backend = pass.backend;
  const DeviceBatch& batch = pass.batch;
  const int64_t t = batch.tokens(), e = pass.config.embedding_size();
  if (!accumulate) {  // the word embedding has zeros where no token was
    backend.fill_zero(position_.in(arena));
    if (Tensor types = type_.in(arena)) backend.fill_zero(types);
  }
  const Tensor gradient = below_projection(pass, arena, accumulate);
  if (Dropout dropout = pass.sites.embeddings(); dropout.on()) {
    backend.dropout(gradient, dropout, batch.token_names(), gradient);
  }
  backend.add_layer_norm_backward(
      gradient, pass.at(pass.plan.embedding_sum, t, e), pass.at(pass.plan.embedding_stats, t, 2),
      gamma_.in(pass.weights), {}, {}, gradient, {}, gamma_.in(arena), beta_.in(arena), accumulate);
  backend.embed_backward(gradient, batch.ids(), batch.positions(), batch.types(), batch.order(),
                         word_.in(arena), positions(pass, arena), type_.in(arena));
  // As transformers does, tokens without a position do not train the row that they take.
  if (batch.first_position() > 0) backend.fill_zero(positions(pass, arena).rows_from(0, 1));
}

HeadEnd::HeadEnd(const ParameterTable& table) : head_(table.head()) {
  if (head_.kind == HeadKind::masked) {
    masked_ = MaskedEnd(table);
    return;
  }
  auto weight = [&](Role role) { return slot_of(table, role, ParameterPart::weight); };
  auto bias = [&](Role role) { return slot_of(table, role, ParameterPart::bias); };
  const Role last = traits_of(head_.kind).role;
  weight_ = weight(last);
  bias_ = bias(last);
  if (!of_sequences()) return;
  pooler_weight_ = weight(Role::pooler);
  pooler_bias_ = bias(Role::pooler);
}

void HeadEnd::forward(const EndPass& pass) const {
  if (head_.kind == HeadKind::masked) return masked_.forward(pass);
  Backend& backend = pass.backend;
  const int64_t rows = of_sequences() ? pass.batch.sequences() : pass.batch.tokens();
  Tensor features = of_sequences() ? pooled_features(pass) : token_features(pass);
  backend.linear(features, weight_.in(pass.weights), bias_.in(pass.weights),
                 pass.at(pass.plan.logits, rows, head_.outputs));
}

Tensor HeadEnd::pooled_features(const EndPass& pass) const {
  Backend& backend = pass.backend;
  const int64_t rows = pass.batch.sequences(), h = pass.config.hidden_size;
  Tensor output = pass.at(pass.plan.layers.back().output, rows, h);
  Tensor before = pass.at(pass.plan.pooler_input, rows, h);
  Tensor pooled = pass.at(pass.plan.pooled, rows, h);
  // In place: no one else reads the encoder's output under a sequence head.
  if (Dropout dropout = pass.sites.head_input(); dropout.on()) {
    backend.dropout(output, dropout, pass.batch.first_names(), output);
  }
  backend.linear(output, pooler_weight_.in(pass.weights), pooler_bias_.in(pass.weights), before);
  backend.activation(pass.config.head.activation, before, pooled);
  if (Dropout dropout = pass.sites.head(); dropout.on()) {
    backend.dropout(pooled, dropout, pass.batch.first_names(), pooled);
  }
  return pooled;
}

Tensor HeadEnd::token_features(const EndPass& pass) const {
  const int64_t rows = pass.batch.tokens(), h = pass.config.hidden_size;
  Tensor output = pass.at(pass.plan.layers.back().output, rows, h);
  const Dropout dropout = pass.sites.token_head();
  if (!dropout.on()) return output;
  Tensor dropped = pass.at(pass.plan.dropped, rows, h);
  pass.backend.dropout(output, dropout, pass.batch.token_names(), dropped);
  return dropped;
}

void HeadEnd::backward(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                       bool accumulate) const {
  if (head_.kind == HeadKind::masked) {
    return masked_.backward(pass, arena, dlogits, dencoder, accumulate);
  }
  if (!of_sequences()) return backward_of_tokens(pass, arena, dlogits, dencoder, accumulate);
  Backend& backend = pass.backend;
  float* weights = pass.weights;
  const int64_t count = dlogits.rows, h = pass.config.hidden_size;
  Tensor output = pass.at(pass.plan.layers.back().output, count, h);
  Tensor before = pass.at(pass.plan.pooler_input, count, h);
  Tensor pooled = pass.at(pass.plan.pooled, count, h);
  Tensor dpooled = pass.at(pass.plan.branch_gradient, count, h);
  backend.linear_backward_input(dlogits, weight_.in(weights), dpooled, false);
  backend.linear_backward_weight(dlogits, pooled, weight_.in(arena), bias_.in(arena), accumulate);
  if (Dropout dropout = pass.sites.head(); dropout.on()) {
    backend.dropout(dpooled, dropout, pass.batch.first_names(), dpooled);
  }
  backend.activation_backward(pass.config.head.activation, before, dpooled, dpooled, {});
  if (dencoder) {
    backend.linear_backward_input(dpooled, pooler_weight_.in(weights), dencoder, false);
    if (Dropout dropout = pass.sites.head_input(); dropout.on()) {
      backend.dropout(dencoder, dropout, pass.batch.first_names(), dencoder);
    }
  }
  backend.linear_backward_weight(dpooled, output, pooler_weight_.in(arena), pooler_bias_.in(arena),
                                 accumulate);
}

void HeadEnd::backward_of_tokens(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                                 bool accumulate) const {
  Backend& backend = pass.backend;
  const Tensor features = token_features(pass);
  if (dencoder) {
    backend.linear_backward_input(dlogits, weight_.in(pass.weights), dencoder, false);
    if (Dropout dropout = pass.sites.token_head(); dropout.on()) {
      backend.dropout(dencoder, dropout, pass.batch.token_names(), dencoder);
    }
  }
  backend.linear_backward_weight(dlogits, features, weight_.in(arena), bias_.in(arena), accumulate);
}

}  // namespace finetune
