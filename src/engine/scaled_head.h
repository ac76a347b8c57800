// Folds the target's scale and mean into a regression head's weights, and back: the head has learnt
// (number - mean) / scale; with the folded weights it gives the number itself.
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

// The inverse, for a trained head in an arena of weights: afterwards it gives (number - mean) /
// scale. Does nothing unless scale.has_trained_head, or if the table's part has no head.
void unscale_head(const ParameterTable& table, const TargetScale& scale, float* weights);

}  // namespace finetune
