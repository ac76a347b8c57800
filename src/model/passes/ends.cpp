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
  if (!table) return table;
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

// Returns the gradient of the projection's input, from that of the first layer's input.
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
  if (!accumulate) {  // the word embedding's gradient is always added (Encoder::backward)
    if (Tensor all_positions = position_.in(arena)) backend.fill_zero(all_positions);
    if (Tensor types = type_.in(arena)) backend.fill_zero(types);
  }
  const Tensor gradient = below_projection(pass, arena, accumulate);
  if (Dropout dropout = pass.sites.embeddings(); dropout.on()) {
    backend.dropout(gradient, dropout, batch.token_names(), gradient);
  }
  backend.add_layer_norm_backward(
      gradient, pass.at(pass.plan.embedding_sum, t, e), pass.at(pass.plan.embedding_stats, t, 2),
      gamma_.in(pass.weights), {}, {}, gradient, {}, gamma_.in(arena), beta_.in(arena), accumulate);
  add_table_gradients(pass, gradient, arena);
}

// As transformers does, padding tokens in a text do not train the word row that they look up, nor
// the position row of tokens that have no position. The decoder of masked words trains every word
// row: its share of the padding row's gradient is saved and added again.
void EmbeddingEnd::add_table_gradients(const EndPass& pass, Tensor gradient, float* arena) const {
  Backend& backend = pass.backend;
  const DeviceBatch& batch = pass.batch;
  const int64_t padding = pass.config.pad_token_id;
  const Tensor words = word_.in(arena);
  const Tensor padding_row = padding < 0 ? Tensor{} : words.rows_from(padding, 1);
  const bool decodes = pass.plan.scored != kAbsent;
  const Tensor of_decoder =
      decodes && padding_row ? pass.at(pass.plan.branch_gradient, 1, words.cols) : Tensor{};
  if (of_decoder) {
    backend.fill_zero(of_decoder);
    backend.add(padding_row, of_decoder);
  }
  backend.embed_backward(gradient, batch.ids(), batch.positions(), batch.types(), batch.order(),
                         words, positions(pass, arena), type_.in(arena));
  if (padding_row) backend.fill_zero(padding_row);
  if (of_decoder) backend.add(of_decoder, padding_row);
  if (batch.first_position() > 0 && position_.rows > 0)
    backend.fill_zero(positions(pass, arena).rows_from(0, 1));
}

HeadEnd::HeadEnd(const ParameterTable& table) : head_(table.head()) {
  auto weight = [&](Role role) { return slot_of(table, role, ParameterPart::weight); };
  auto bias = [&](Role role) { return slot_of(table, role, ParameterPart::bias); };
  final_gamma_ = weight(Role::final_norm);
  final_beta_ = bias(Role::final_norm);
  if (head_.kind == HeadKind::masked) {
    masked_ = MaskedEnd(table);
    return;
  }
  const Role last = traits_of(head_.kind).role;
  weight_ = weight(last);
  bias_ = bias(last);
  pooler_weight_ = weight(Role::pooler);
  pooler_bias_ = bias(Role::pooler);
  norm_gamma_ = weight(Role::head_norm);
  norm_beta_ = bias(Role::head_norm);
}

void HeadEnd::forward(const EndPass& pass) const {
  Backend& backend = pass.backend;
  const Tensor encoder = encoded(pass);
  if (final_gamma_.rows > 0) {
    const Tensor output = pass.at(pass.plan.layers.back().output, encoder.rows, encoder.cols);
    backend.add_layer_norm(output, {}, {}, {}, final_gamma_.in(pass.weights),
                           final_beta_.in(pass.weights), float(pass.config.layer_norm_eps), {},
                           pass.at(pass.plan.final_stats, encoder.rows, 2), encoder);
  }
  if (head_.kind == HeadKind::masked) return masked_.forward(pass, encoder);
  Tensor features = has_dense() ? dense_features(pass) : token_features(pass);
  backend.linear(features, weight_.in(pass.weights), bias_.in(pass.weights),
                 pass.at(pass.plan.logits, rows(pass), head_.outputs));
}

Tensor HeadEnd::encoded(const EndPass& pass) const {
  const bool first_only = pass.config.reads_first_only(head_.kind);
  const int64_t count = first_only ? pass.batch.sequences() : pass.batch.tokens();
  const ActivationPlan& plan = pass.plan;
  return pass.at(final_gamma_.rows > 0 ? plan.final_normed : plan.layers.back().output, count,
                 pass.config.hidden_size);
}

Tensor HeadEnd::dense_input(const EndPass& pass) const {
  const Tensor mean = pass.at(pass.plan.mean, rows(pass), pass.config.hidden_size);
  return mean ? mean : encoded(pass);
}

Tensor HeadEnd::dense_features(const EndPass& pass) const {
  Backend& backend = pass.backend;
  const int64_t count = rows(pass), h = pass.config.hidden_size;
  Tensor input = dense_input(pass);
  if (pass.plan.mean != kAbsent) {
    backend.segment_mean(encoded(pass), pass.batch.segments(), input);
  }
  Tensor before = pass.at(pass.plan.pooler_input, count, h);
  Tensor pooled = pass.at(pass.plan.pooled, count, h);
  // In place: nothing else reads this input.
  if (Dropout dropout = pass.sites.head_input(); dropout.on()) {
    backend.dropout(input, dropout, names(pass), input);
  }
  backend.linear(input, pooler_weight_.in(pass.weights), pooler_bias_.in(pass.weights), before);
  Tensor sum = pass.at(pass.plan.head_sum, count, h);
  backend.activation(pass.config.head.activation, before, sum ? sum : pooled);
  if (sum) {
    backend.add_layer_norm(sum, {}, {}, {}, norm_gamma_.in(pass.weights),
                           norm_beta_.in(pass.weights), float(pass.config.layer_norm_eps), {},
                           pass.at(pass.plan.head_stats, count, 2), pooled);
  }
  if (Dropout dropout = pass.sites.head(); dropout.on()) {
    backend.dropout(pooled, dropout, names(pass), pooled);
  }
  return pooled;
}

Tensor HeadEnd::token_features(const EndPass& pass) const {
  Tensor output = encoded(pass);
  const Dropout dropout = pass.sites.token_head();
  if (!dropout.on()) return output;
  Tensor dropped = pass.at(pass.plan.dropped, output.rows, output.cols);
  pass.backend.dropout(output, dropout, names(pass), dropped);
  return dropped;
}

void HeadEnd::backward(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                       bool accumulate) const {
  if (head_.kind == HeadKind::masked) {
    masked_.backward(pass, arena, dlogits, dencoder, accumulate);
  } else if (has_dense()) {
    backward_of_dense(pass, arena, dlogits, dencoder, accumulate);
  } else {
    backward_of_tokens(pass, arena, dlogits, dencoder, accumulate);
  }
  if (!dencoder || final_gamma_.rows == 0) return;
  const Tensor output = pass.at(pass.plan.layers.back().output, dencoder.rows, dencoder.cols);
  pass.backend.add_layer_norm_backward(dencoder, output,
                                       pass.at(pass.plan.final_stats, dencoder.rows, 2),
                                       final_gamma_.in(pass.weights), {}, {}, dencoder, {},
                                       final_gamma_.in(arena), final_beta_.in(arena), accumulate);
}

void HeadEnd::backward_of_dense(const EndPass& pass, float* arena, Tensor dlogits, Tensor dencoder,
                                bool accumulate) const {
  Backend& backend = pass.backend;
  float* weights = pass.weights;
  const int64_t count = dlogits.rows, h = pass.config.hidden_size;
  Tensor before = pass.at(pass.plan.pooler_input, count, h);
  Tensor pooled = pass.at(pass.plan.pooled, count, h);
  Tensor dpooled = pass.at(pass.plan.branch_gradient, count, h);
  backend.linear_backward_input(dlogits, weight_.in(weights), dpooled, false);
  backend.linear_backward_weight(dlogits, pooled, weight_.in(arena), bias_.in(arena), accumulate);
  if (Dropout dropout = pass.sites.head(); dropout.on()) {
    backend.dropout(dpooled, dropout, names(pass), dpooled);
  }
  if (Tensor sum = pass.at(pass.plan.head_sum, count, h)) {
    backend.add_layer_norm_backward(dpooled, sum, pass.at(pass.plan.head_stats, count, 2),
                                    norm_gamma_.in(weights), {}, {}, dpooled, {},
                                    norm_gamma_.in(arena), norm_beta_.in(arena), accumulate);
  }
  backend.activation_backward(pass.config.head.activation, before, dpooled, dpooled, {});
  Tensor dmean = pass.at(pass.plan.mean_gradient, count, h), dinput = dmean ? dmean : dencoder;
  if (dencoder) {
    backend.linear_backward_input(dpooled, pooler_weight_.in(weights), dinput, false);
    if (Dropout dropout = pass.sites.head_input(); dropout.on()) {
      backend.dropout(dinput, dropout, names(pass), dinput);
    }
    if (dmean) backend.segment_mean_backward(dmean, pass.batch.segments(), dencoder);
  }
  backend.linear_backward_weight(dpooled, dense_input(pass), pooler_weight_.in(arena),
                                 pooler_bias_.in(arena), accumulate);
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
