// How a classification model's logits become probabilities and labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace finetune {

struct LogitCalibration {
  double temperature = 1;  // logits are divided by it
  // Several labels a row: the least probability with which each label is given. Empty: more than
  // one half.
  std::vector<float> thresholds;

  bool operator==(const LogitCalibration&) const = default;
};

// One label a row: instead of a temperature, the logits are model * logits + ngrams * margins,
// where a linear model on n-grams gives the margins.
struct MixWeights {
  double model = 0, ngrams = 0;  // not negative

  bool operator==(const MixWeights&) const = default;
};

// A mix as config.json stores it: its weights, and the SHA-256 of the n-grams' file.
struct StoredMix {
  MixWeights weights;
  std::string sha256;
};

}  // namespace finetune
