// What makes probabilities and labels of a model's logits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace finetune {

struct LogitCalibration {
  double temperature = 1;  // logits are divided by it
  // Several labels a row: one for each, the least probability that it is given with; none: more
  // than one half.
  std::vector<float> thresholds;

  bool operator==(const LogitCalibration&) const = default;
};

// One label a row: in place of a temperature the logits are model * logits + ngrams * margins, with
// the margins of a linear model on n-grams.
struct MixWeights {
  double model = 0, ngrams = 0;  // not negative

  bool operator==(const MixWeights&) const = default;
};

// What config.json says of a mix: its weights, and the sum that the file beside it must have.
struct StoredMix {
  MixWeights weights;
  std::string sha256;
};

}  // namespace finetune
