// The reference of an encoder layer's two halves, composed of operations.
#include <cmath>
#include <vector>

#include "core/numeric/dtype.h"
#include "ops/reference/reference_backend.h"

namespace finetune {
namespace {

// Intermediate values.
class Floats {
 public:
  Floats(int64_t rows, int64_t cols)
      : values_(size_t(rows * cols)), view_(matrix(values_.data(), rows, cols)) {}
  operator Tensor() const { return view_; }

 private:
  std::vector<float> values_;
  Tensor view_;
};

bfloat16* row(Tensor t, int64_t r) {
  return static_cast<bfloat16*>(t.data) + r * t.stride;
}

}  // namespace

void ReferenceBackend::self_attention(const AttentionShape& shape, Tensor x, Tensor first,
                                      Tensor weight, Tensor bias, Tensor context) {
  const int64_t h = x.cols;
  const Tensor asking = first ? first : x;
  FINETUNE_CHECK(context.dtype == DType::bf16 && context.rows == asking.rows && context.cols == h);
  const Floats q(asking.rows, h), k(x.rows, h), v(x.rows, h), out(asking.rows, h);
  linear(asking, weight.rows_from(0, h), bias.columns(0, h), q);
  linear(x, weight.rows_from(h, h), bias.columns(h, h), k);
  linear(x, weight.rows_from(2 * h, h), bias.columns(2 * h, h), v);
  attention(shape, {}, q, k, v, out, {}, {});
  for (int64_t r = 0; r < context.rows; ++r) {
    for (int64_t c = 0; c < h; ++c) row(context, r)[c] = bfloat16(reference::at(out, r, c));
  }
}

void ReferenceBackend::layer_output(const LayerOutput& layer, Tensor context, Tensor residual,
                                    Tensor y) {
  const int64_t h = layer.hidden(), rows = y.rows;
  FINETUNE_CHECK(context.dtype == DType::bf16 && context.rows == rows && context.cols == h);
  const Floats input(rows, h), sum(rows, h), middle(rows, h), inner(rows, layer.inner());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < h; ++c) reference::at(input, r, c) = float(row(context, r)[c]);
  }
  linear(input, layer.attention_weight, layer.attention_bias, sum);
  add_layer_norm(sum, residual, {}, {}, layer.attention_gamma, layer.attention_beta, layer.epsilon,
                 {}, {}, middle, {});
  linear(middle, layer.inner_weight, layer.inner_bias, inner);
  activation(layer.activation, inner, inner);
  linear(inner, layer.output_weight, layer.output_bias, sum);
  add_layer_norm(sum, middle, {}, {}, layer.output_gamma, layer.output_beta, layer.epsilon, {}, {},
                 y, {});
}

}  // namespace finetune
