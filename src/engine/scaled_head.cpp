// Scales the head's weights and bias.
#include "engine/scaled_head.h"

namespace finetune {
namespace {

bool is_head(const Parameter& parameter, ParameterPart part) {
  return parameter.role == Role::sequence_head && parameter.part == part;
}

}  // namespace

const float* ScaledHeadTensors::contents(const TensorPiece& piece) {
  const float* own = inner_.contents(piece);
  const Parameter& parameter = table().parameters()[size_t(piece.tensor)];
  const bool weight = is_head(parameter, ParameterPart::weight);
  if (piece.arena != Arena::weights || !(weight || is_head(parameter, ParameterPart::bias))) {
    return own;
  }
  scaled_.assign(own, own + piece.elements.size());
  for (float& value : scaled_) {
    value = float(double(value) * scale_.scale + (weight ? 0.0 : scale_.mean));
  }
  return scaled_.data();
}

void unscale_head(const ParameterTable& table, const TargetScale& scale, float* weights) {
  if (!scale.has_trained_head) return;
  for (const Parameter& parameter : table.parameters()) {
    const bool weight = is_head(parameter, ParameterPart::weight);
    if (!weight && !is_head(parameter, ParameterPart::bias)) continue;
    float* values = weights + parameter.offset;
    for (int64_t i = 0; i < parameter.size(); ++i) {
      values[i] = float((double(values[i]) - (weight ? 0.0 : scale.mean)) / scale.scale);
    }
  }
}

}  // namespace finetune
