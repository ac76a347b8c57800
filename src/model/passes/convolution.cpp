// Multiplies each token's row and its neighbours' by the convolution's weight.
#include "model/passes/convolution.h"

namespace finetune {

Convolution::Convolution(const ParameterTable& table, const EncoderConfig& config) {
  if (!config.convolution.on()) return;
  weight_ = slot_of(table, Role::convolution, ParameterPart::weight);
  bias_ = slot_of(table, Role::convolution, ParameterPart::bias);
  gamma_ = slot_of(table, Role::convolution_norm, ParameterPart::weight);
  beta_ = slot_of(table, Role::convolution_norm, ParameterPart::bias);
}

Tensor Convolution::taps(const EndPass& pass) const {
  const Tensor to = pass.at(pass.plan.taps, pass.batch.tokens(), weight_.cols);
  pass.backend.gather_taps(rows(pass, pass.plan.layers[0].input), pass.batch.segments(),
                           pass.config.convolution.taps, to);
  return to;
}

void Convolution::begin(const EndPass& pass) const {
  if (!on()) return;
  const Tensor product = rows(pass, pass.plan.convolved);
  pass.backend.linear(taps(pass), weight_.in(pass.weights), bias_.in(pass.weights), product);
  if (Dropout dropout = pass.sites.convolution(); dropout.on()) {
    pass.backend.dropout(product, dropout, pass.batch.token_names(), product);
  }
  pass.backend.activation(pass.config.convolution.activation, product,
                          rows(pass, pass.plan.convolution_sum));
}

void Convolution::finish(const EndPass& pass, bool keep) const {
  if (!on()) return;
  const LayerOffsets& layer = pass.plan.layers[0];
  const Tensor output = rows(pass, layer.output), sum = rows(pass, pass.plan.convolution_sum);
  pass.backend.add(output, sum);
  Tensor rounded;
  if (layer.output_rounded != kAbsent) {
    rounded = {pass.memory + layer.output_rounded, DType::bf16, output.rows, output.cols,
               output.cols};
  }
  pass.backend.add_layer_norm(
      sum, {}, {}, {}, gamma_.in(pass.weights), beta_.in(pass.weights),
      float(pass.config.layer_norm_eps), keep ? sum : Tensor{},
      keep ? pass.at(pass.plan.convolution_stats, output.rows, 2) : Tensor{}, output, rounded);
}

void Convolution::backward(const EndPass& pass, float* arena, bool accumulate) const {
  if (!on()) return;
  Backend& backend = pass.backend;
  const Tensor gradient = rows(pass, pass.plan.gradient);
  const Tensor dproduct = rows(pass, pass.plan.convolved_gradient);
  backend.add_layer_norm_backward(gradient, rows(pass, pass.plan.convolution_sum),
                                  pass.at(pass.plan.convolution_stats, gradient.rows, 2),
                                  gamma_.in(pass.weights), {}, {}, gradient, {}, gamma_.in(arena),
                                  beta_.in(arena), accumulate);
  backend.activation_backward(pass.config.convolution.activation, rows(pass, pass.plan.convolved),
                              gradient, dproduct, {});
  if (Dropout dropout = pass.sites.convolution(); dropout.on()) {
    backend.dropout(dproduct, dropout, pass.batch.token_names(), dproduct);
  }
  const Tensor operand = taps(pass);
  backend.linear_backward_weight(dproduct, operand, weight_.in(arena), bias_.in(arena), accumulate);
  backend.linear_backward_input(dproduct, weight_.in(pass.weights), operand, false);
  backend.gather_taps_backward(operand, pass.batch.segments(), pass.config.convolution.taps,
                               rows(pass, pass.plan.convolution_input));
}

void Convolution::add_input_gradient(const EndPass& pass) const {
  if (!on()) return;
  pass.backend.add(rows(pass, pass.plan.convolution_input), rows(pass, pass.plan.gradient));
}

}  // namespace finetune
