// A linear model on n-grams that scores texts, trained here or read from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/classification/ngrams/vectorizer.h"

namespace finetune {

// The weights of one output, as trained.
struct OutputWeights {
  int32_t output = 0;
  float bias = 0;
  std::vector<Feature> weights;  // by feature, without zeros
};

// The weights of all outputs, without zeros, by feature.
class SparseWeights {
 public:
  SparseWeights() = default;
  // `parts`: each output at most once, in any order. An output without a part is never predicted.
  SparseWeights(int64_t features, int64_t outputs, std::span<const OutputWeights> parts);

  struct Weight {
    int32_t output;
    float value;
  };
  // From stored arrays: `begins` has the begin of each feature's weights, and the end.
  SparseWeights(std::vector<uint64_t> begins, std::vector<Weight> weights,
                std::vector<double> biases);

  // Fills `scores`, one for each output.
  void score(std::span<const Feature> features, std::span<double> scores) const;
  int64_t features() const { return int64_t(begins_.size()) - 1; }
  int64_t outputs() const { return int64_t(biases_.size()); }
  std::span<const double> biases() const { return biases_; }
  // Ordered by output, without zeros.
  std::span<const Weight> of(int64_t feature) const {
    const uint64_t begin = begins_[size_t(feature)], end = begins_[size_t(feature) + 1];
    return std::span(weights_).subspan(begin, end - begin);
  }

 private:
  std::vector<uint64_t> begins_;  // of each feature's weights, then the end
  std::vector<Weight> weights_;   // within a feature ordered by output
  std::vector<double> biases_;
};

// The problem type defines the meaning of the scores: the label with the largest score (the first
// of equal ones), all labels with a score above 0, or the score is the number.
class NgramModel {
 public:
  NgramModel(std::unique_ptr<const NgramIndex> index, SparseWeights weights);
  int64_t outputs() const { return weights_.outputs(); }
  const NgramIndex& index() const { return *index_; }
  const SparseWeights& weights() const { return weights_; }
  std::span<const double> score(std::string_view text);  // valid until the next call

 private:
  std::unique_ptr<const NgramIndex> index_;
  Vectorizer vectorizer_;
  SparseWeights weights_;
  std::vector<double> scores_;
};

}  // namespace finetune
