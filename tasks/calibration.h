// How a classification model's logits become probabilities and labels.
#pragma once

#include <cstdint>
#include <optional>
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

// evaluate: of the rows with at least some probability, at most this share may be wrong, with this
// confidence.
struct PromiseRequest {
  double max_error = 0.05, confidence = 0.95;
};

// A threshold that keeps the promise, or why there is none (calibration/promise.h).
struct Promise {
  PromiseRequest wanted;
  std::optional<double> threshold;   // the least probability of an automatic label
  int64_t rows = 0;                  // that were tested
  int64_t automatic = 0, wrong = 0;  // of these rows: with that probability, and wrong among them
  // Without a threshold: about how many rows would give one; nothing where more rows of this kind
  // would not help.
  std::optional<int64_t> needed_rows;
};

}  // namespace finetune
