// The convolution beside the first layer (DeBERTa v2-xlarge): its taps stay within a text.
#pragma once

#include "model/passes/ends.h"

namespace finetune {

class Convolution {
 public:
  Convolution() = default;  // for a part without embeddings, or a model without a convolution
  Convolution(const ParameterTable& table, const EncoderConfig& config);

  bool on() const { return weight_.rows > 0; }
  // Call before the first layer, which may overwrite its input.
  void begin(const EndPass& pass) const;
  // Call after it: adds the result to the layer's output, and norms the sum.
  void finish(const EndPass& pass, bool keep) const;
  // Call backward() before that layer's backward pass, with the gradient of its output, and
  // add_input_gradient() after it, which adds to the gradient of its input.
  void backward(const EndPass& pass, float* arena, bool accumulate) const;
  void add_input_gradient(const EndPass& pass) const;

 private:
  Tensor rows(const EndPass& pass, int64_t place) const {
    return pass.at(place, pass.batch.tokens(), pass.config.hidden_size);
  }
  // The product's operand.
  Tensor taps(const EndPass& pass) const;

  Slot weight_, bias_, gamma_, beta_;
};

}  // namespace finetune
