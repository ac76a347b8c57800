// The training rows as vectors, in liblinear's format.
#pragma once

#include <linear.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/ngrams/vectorizer.h"

namespace finetune {

// Rows of (index, value), ended by index -1. Index 1 is the bias with the value 1. Feature i has
// index i + 2.
class DesignMatrix {
 public:
  static constexpr int kBias = 1, kFirstFeature = 2;

  void add(std::span<const Feature> features);
  void clear();  // keeps the memory
  int64_t rows() const { return int64_t(begins_.size()); }
  int64_t entries() const { return int64_t(nodes_.size()); }
  // Without the bias and the end marker.
  std::span<const feature_node> row(int64_t row) const;
  feature_node* begin_of(int64_t row) { return &nodes_[begins_[size_t(row)]]; }
  int64_t indices = 1;  // the largest index

 private:
  std::vector<feature_node> nodes_;
  std::vector<size_t> begins_;
};

// Some rows of a matrix with renumbered features, so that there are few weights.
class RowSelection {
 public:
  explicit RowSelection(const DesignMatrix& whole)
      : whole_(whole), new_(size_t(whole.indices) + 1) {}
  // Valid until the next call.
  DesignMatrix& select(std::span<const uint32_t> rows);
  // For each index of the selection, the index in the whole matrix.
  const std::vector<int>& indices() const { return old_; }

 private:
  const DesignMatrix& whole_;
  std::vector<int> new_;  // 0: not in the selection
  std::vector<int> old_;
  DesignMatrix selected_;
  std::vector<Feature> features_;
};

}  // namespace finetune
