// A model's dropout: the masks of one step, and the dropout of each site in a pass.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/encoder_layer.h"
#include "ops/backend.h"

namespace finetune {

// Dropout of one step: the seed of its masks, and the probabilities; 0 switches it off.
struct DropoutPlan {
  uint64_t seed = 0;
  uint32_t step = 0;
  double hidden = 0;
  double attention = 0;
  double head = 0;
  double head_input = -1;  // < 0: as head
  double gate = 0;
  // The result of dropout_streams() in backend memory, used instead of seed and step. If null, seed
  // and step are used.
  const DropoutStream* streams = nullptr;
};
// Returns one stream for each use of dropout in the model.
std::vector<DropoutStream> dropout_streams(const EncoderConfig& config, uint64_t seed,
                                           uint32_t step);

// Dropout of every site in one step. It is off for sites that the model's blocks do not have, and
// for all sites if `plan` is null. Plan and configuration must outlive this.
class DropoutSites {
 public:
  DropoutSites(const DropoutPlan* plan, const EncoderConfig& config)
      : plan_(plan), config_(config) {}
  Dropout embeddings() const;
  Dropout head_input() const;  // of a sequence head, before its dense layer
  Dropout head() const;        // of a sequence head, after its dense layer
  Dropout token_head() const;  // before the layer of a token head
  Dropout convolution() const;
  Dropout relative(int64_t layer) const;    // of the table of relative positions, in a layer
  LayerDropout layer(int64_t layer) const;  // of the whole model, 0 for the first

 private:
  double hidden() const { return plan_ ? plan_->hidden : 0; }
  Dropout site(double probability, uint32_t use, int64_t stream) const;

  const DropoutPlan* plan_;
  const EncoderConfig& config_;
};

}  // namespace finetune
