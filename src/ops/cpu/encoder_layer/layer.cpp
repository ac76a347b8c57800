// Checks shapes of whole-layer inference and hands them to the tile kernels.
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/encoder_layer/tile_layer.h"
#include "ops/cpu/isa.h"

namespace finetune {

bool CpuBackend::has_layer(const LayerShape& shape) const {
  return compute_ == DType::bf16 && multiplies_bf16(select_isa()) && cpu::has_tile_layer(shape);
}

void CpuBackend::self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                                Tensor bias, Tensor context) {
  const int64_t hidden = shape.heads * shape.head_size;
  FINETUNE_CHECK(shape.queries.count == shape.keys.count && x.rows > 0);
  FINETUNE_CHECK(shape.keys.offsets[shape.keys.count] == x.rows);
  FINETUNE_CHECK(shape.queries.offsets[shape.queries.count] == context.rows);
  FINETUNE_CHECK(x.cols == hidden && (!first || first.cols == hidden));
  FINETUNE_CHECK(weight.rows == 3 * hidden && weight.cols == hidden && bias.size() == 3 * hidden);
  FINETUNE_CHECK(context.dtype == DType::bf16 && context.cols == hidden);
  FINETUNE_CHECK(context.rows == (first ? first : x).rows);
  cpu::tile_self_attention(shape, x, first, weight, bias, context);
}

void CpuBackend::layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y) {
  const int64_t hidden = layer.hidden(), inner = layer.inner();
  FINETUNE_CHECK(y.rows > 0);
  FINETUNE_CHECK(context.dtype == DType::bf16 && context.cols == hidden);
  for (Tensor t : {context, residual, y}) FINETUNE_CHECK(t.rows == y.rows && t.cols == hidden);
  FINETUNE_CHECK(layer.attention_weight.cols == hidden && layer.inner_weight.cols == hidden);
  FINETUNE_CHECK(layer.output_weight.rows == hidden && layer.output_weight.cols == inner);
  cpu::tile_layer_output(layer, context, residual, y);
}

}  // namespace finetune
