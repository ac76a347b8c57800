// A model's weights as safetensors, slab by slab.
#include "engine/model_tensors.h"

#include <vector>

namespace finetune {
namespace {

WeightRows weights_of(ModelTensors& tensors) {
  return [&tensors](size_t tensor, int64_t first, int64_t count) {
    return tensors.contents(rows_of(tensors.table(), Arena::weights, tensor, first, count));
  };
}

}  // namespace

std::vector<WeightShape> weight_shapes(const ParameterTable& table) {
  std::vector<WeightShape> shapes;
  for (const Parameter& parameter : table.parameters()) {
    shapes.push_back({parameter.name, parameter.shape});
  }
  return shapes;
}

TensorPiece rows_of(const ParameterTable& table, Arena arena, size_t tensor, int64_t first,
                    int64_t count) {
  const Parameter& parameter = table.parameters()[tensor];
  const int64_t row = parameter.size() / parameter.shape[0];
  return {arena, int64_t(tensor), {first * row, (first + count) * row}};
}

void write_weights(const std::filesystem::path& path, ModelTensors& tensors, DType dtype) {
  write_safetensors(path, weight_shapes(tensors.table()), weights_of(tensors), dtype);
}

std::string weights_sha256(ModelTensors& tensors) {
  return safetensors_sha256(weight_shapes(tensors.table()), weights_of(tensors), DType::f32);
}

}  // namespace finetune
