// Stores rows one after the other, and selects some of them.
#include "tasks/classification/ngrams/design_matrix.h"

namespace finetune {

void DesignMatrix::add(std::span<const Feature> features) {
  begins_.push_back(nodes_.size());
  nodes_.push_back({kBias, 1.0});
  for (const Feature& feature : features) {
    const int index = int(feature.id) + kFirstFeature;
    indices = std::max<int64_t>(indices, index);
    nodes_.push_back({index, double(feature.value)});
  }
  nodes_.push_back({-1, 0});
}

std::span<const feature_node> DesignMatrix::row(int64_t row) const {
  const size_t next = size_t(row) + 1 < begins_.size() ? begins_[size_t(row) + 1] : nodes_.size();
  return {&nodes_[begins_[size_t(row)] + 1], &nodes_[next - 1]};
}

void DesignMatrix::clear() {
  nodes_.clear();
  begins_.clear();
  indices = 1;
}

DesignMatrix& RowSelection::select(std::span<const uint32_t> rows) {
  for (size_t i = DesignMatrix::kFirstFeature; i < old_.size(); ++i) new_[size_t(old_[i])] = 0;
  old_ = {0, DesignMatrix::kBias};
  selected_.clear();
  for (uint32_t row : rows) {
    features_.clear();
    for (const feature_node& node : whole_.row(row)) {
      int& index = new_[size_t(node.index)];
      if (index == 0) {
        index = int(old_.size());
        old_.push_back(node.index);
      }
      features_.push_back({uint32_t(index - DesignMatrix::kFirstFeature), float(node.value)});
    }
    selected_.add(features_);
  }
  return selected_;
}

}  // namespace finetune
