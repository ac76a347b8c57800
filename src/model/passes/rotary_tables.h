// The tables of a model's rotary positions (Backend::rotate), in the backend's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "ops/backend.h"

namespace finetune {

// Returns cosines beside sines of the first `positions` positions (positions, head_size). The angle
// of column c is position / theta^(2c / head_size), computed in float as torch does.
std::vector<float> rotary_table(int64_t positions, int64_t head_size, double theta);

class RotaryTables {
 public:
  RotaryTables() = default;  // for a model without rotary positions
  // For texts of up to `tokens` tokens.
  RotaryTables(Backend& backend, const EncoderConfig& config, int64_t tokens);

  // Floats of all tables.
  static int64_t floats(const EncoderConfig& config, int64_t tokens);
  Tensor of_layer(const EncoderConfig& config, int64_t layer) const;

 private:
  std::shared_ptr<void> memory_;
  int64_t positions_ = 0;
};

}  // namespace finetune
