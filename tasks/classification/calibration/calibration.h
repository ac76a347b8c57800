// What makes probabilities and labels of a model's logits.
#pragma once

#include <cstdint>
#include <vector>

namespace finetune {

struct LogitCalibration {
  double temperature = 1;  // logits are divided by it
  // Several labels a row: one for each, the least probability that it is given with; none: more
  // than one half.
  std::vector<float> thresholds;

  bool operator==(const LogitCalibration&) const = default;
};

}  // namespace finetune
