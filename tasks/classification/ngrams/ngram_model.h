// A linear model on n-grams: a value, from training or elsewhere, that scores texts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/classification/ngrams/vectorizer.h"

namespace finetune {

// One output's part, as training gives it.
struct OutputWeights {
  int32_t output = 0;
  float bias = 0;
  std::vector<Feature> weights;  // by feature; those that are 0 are left out
};

// The weights of all outputs that are not 0, by feature.
class SparseWeights {
 public:
  SparseWeights() = default;
  // `parts`: each output at most once, in any order; an output without a part is never predicted.
  SparseWeights(int64_t features, int64_t outputs, std::span<const OutputWeights> parts);

  // Fills `scores`, one for each output.
  void score(std::span<const Feature> features, std::span<double> scores) const;
  int64_t outputs() const { return int64_t(biases_.size()); }

 private:
  struct Weight {
    int32_t output;
    float value;
  };
  std::vector<uint64_t> begins_;  // of each feature's weights, and the end
  std::vector<Weight> weights_;   // of one feature by output
  std::vector<double> biases_;
};

// What a text's scores mean is the problem's: the largest counts (the first of equals), those above
// 0, or the score is the number.
class NgramModel {
 public:
  NgramModel(NgramTable table, SparseWeights weights);
  int64_t outputs() const { return weights_.outputs(); }
  std::span<const double> score(std::string_view text);  // valid until the next call

 private:
  std::unique_ptr<const NgramTable> table_;
  Vectorizer vectorizer_;
  SparseWeights weights_;
  std::vector<double> scores_;
};

}  // namespace finetune
