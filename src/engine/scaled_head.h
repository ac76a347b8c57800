// The head of a regression that has learnt (number - mean) / scale: folded into weights that give
// the number itself, and back.
#pragma once

#include <vector>

#include "engine/model_tensors.h"
#include "tasks/target_scale.h"

namespace finetune {

// The tensors of `inner` with the head's weights times scale and its bias times scale plus mean.
// `inner` must outlive this.
class ScaledHeadTensors final : public ModelTensors {
 public:
  ScaledHeadTensors(ModelTensors& inner, const TargetScale& scale)
      : ModelTensors(inner.table()), inner_(inner), scale_(scale) {}

  bool has(Arena arena) const override { return inner_.has(arena); }
  const float* contents(const TensorPiece& piece) override;
  float* room(const TensorPiece& piece) override { return inner_.room(piece); }
  void filled(const TensorPiece& piece, const float* data) override { inner_.filled(piece, data); }

 private:
  ModelTensors& inner_;
  TargetScale scale_;
  std::vector<float> scaled_;
};

// The way back, of a trained head in an arena of weights: what gives numbers gives (number - mean)
// / scale then. Nothing where there is none, or the table's part has no head.
void unscale_head(const ParameterTable& table, const TargetScale& scale, float* weights);

}  // namespace finetune
