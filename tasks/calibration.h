// How a classification model's logits become probabilities and labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace finetune {

struct LogitCalibration {
  double temperature = 1;  // logits are divided by it
  // With several labels per row: the minimum probability at which each label is given. Empty: more
  // than one half.
  std::vector<float> thresholds;

  bool operator==(const LogitCalibration&) const = default;
};

// With one label per row: instead of a temperature, the logits are model * logits + ngrams *
// margins. A linear model on n-grams gives the margins.
struct MixWeights {
  double model = 0, ngrams = 0;  // not negative

  bool operator==(const MixWeights&) const = default;
};

// A mix as stored in config.json: its weights, and the SHA-256 of the n-grams' file.
struct StoredMix {
  MixWeights weights;
  std::string sha256;
};

// What evaluate promises: with this confidence, at most this share of the rows above a threshold of
// probability is wrong.
struct PromiseRequest {
  double max_error = 0.05, confidence = 0.95;
};

// A threshold that keeps the promise, or why none does (calibration/promise.h).
struct Promise {
  PromiseRequest wanted;
  std::optional<double> threshold;   // the minimum probability of an automatic label
  int64_t rows = 0;                  // number of tested rows
  int64_t automatic = 0, wrong = 0;  // of `rows`: automatic ones; wrong ones of these
  // Without a threshold: about how many rows would give one, or nothing if more rows of this kind
  // would not help.
  std::optional<int64_t> needed_rows;
};

}  // namespace finetune
