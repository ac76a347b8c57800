// Sorts weights by feature, and adds up the weights of a text's features.
#include "tasks/classification/ngrams/ngram_model.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace finetune {

SparseWeights::SparseWeights(int64_t features, int64_t outputs,
                             std::span<const OutputWeights> parts)
    : begins_(size_t(features) + 1),
      biases_(size_t(outputs), -std::numeric_limits<double>::infinity()) {
  std::vector<const OutputWeights*> in_order;
  for (const OutputWeights& part : parts) in_order.push_back(&part);
  std::sort(in_order.begin(), in_order.end(),
            [](const auto* a, const auto* b) { return a->output < b->output; });
  for (const OutputWeights* part : in_order) {
    biases_.at(size_t(part->output)) = double(part->bias);
    for (const Feature& weight : part->weights) ++begins_.at(weight.id + 1);
  }
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  weights_.resize(begins_.back());
  std::vector<uint64_t> next(begins_.begin(), begins_.end() - 1);
  for (const OutputWeights* part : in_order) {
    for (const Feature& weight : part->weights) {
      weights_[next[weight.id]++] = {part->output, weight.value};
    }
  }
}

SparseWeights::SparseWeights(std::vector<uint64_t> begins, std::vector<Weight> weights,
                             std::vector<double> biases)
    : begins_(std::move(begins)), weights_(std::move(weights)), biases_(std::move(biases)) {}

void SparseWeights::score(std::span<const Feature> features, std::span<double> scores) const {
  std::copy(biases_.begin(), biases_.end(), scores.begin());
  for (const Feature& feature : features) {
    for (uint64_t i = begins_[feature.id]; i < begins_[feature.id + 1]; ++i) {
      scores[size_t(weights_[i].output)] += double(weights_[i].value) * double(feature.value);
    }
  }
}

NgramModel::NgramModel(std::unique_ptr<const NgramIndex> index, SparseWeights weights)
    : index_(std::move(index)),
      vectorizer_(*index_),
      weights_(std::move(weights)),
      scores_(size_t(weights_.outputs())) {}

std::span<const double> NgramModel::score(std::string_view text) {
  weights_.score(vectorizer_(text), scores_);
  return scores_;
}

}  // namespace finetune
