#include "train/tree_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.h"

namespace finetune {

int64_t GradientTree::arenas_needed(int64_t shards) {
  return std::bit_width(uint64_t(std::max<int64_t>(shards, 1)));
}

GradientTree::GradientTree(Backend& backend, int64_t elements, int64_t shards)
    : backend_(backend), elements_(elements) {
  for (int64_t i = 0; i < arenas_needed(shards); ++i) {
    arenas_.push_back({backend.allocate(size_t(elements) * sizeof(float))});
    free_.push_back(size_t(i));
  }
}

size_t GradientTree::take_free() {
  FINETUNE_CHECK(!free_.empty());
  size_t arena = free_.back();
  free_.pop_back();
  if (!arenas_[arena].zero) backend_.fill_zero(vector(arenas_[arena].data(), elements_));
  arenas_[arena].zero = false;
  return arena;
}

float* GradientTree::leaf() {
  if (leaf_ < 0) leaf_ = int64_t(take_free());
  return arenas_[size_t(leaf_)].data();
}

void GradientTree::combine_last_two() {
  Partial right = partials_.back();
  partials_.pop_back();
  Partial& left = partials_.back();
  backend_.add(vector(arenas_[right.arena].data(), elements_),
               vector(arenas_[left.arena].data(), elements_));
  left.level += 1;
  free_.push_back(right.arena);
}

void GradientTree::push() {
  FINETUNE_CHECK(leaf_ >= 0);
  partials_.push_back({size_t(leaf_), 0});
  leaf_ = -1;
  while (partials_.size() >= 2 && partials_.back().level == partials_[partials_.size() - 2].level) {
    combine_last_two();
  }
}

float* GradientTree::root() {
  FINETUNE_CHECK(leaf_ < 0 && !partials_.empty());
  while (partials_.size() > 1) combine_last_two();
  return arenas_[partials_[0].arena].data();
}

void GradientTree::clear(bool root_is_zero) {
  FINETUNE_CHECK(leaf_ < 0 && partials_.size() <= 1);
  if (partials_.empty()) return;
  arenas_[partials_[0].arena].zero = root_is_zero;
  free_.push_back(partials_[0].arena);
  partials_.clear();
}

double tree_sum(std::span<const double> terms) {
  double partial[64];  // of decreasing size
  int count = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    partial[count++] = terms[i];
    for (int carries = std::countr_one(i); carries > 0; --carries, --count) {
      partial[count - 2] += partial[count - 1];
    }
  }
  if (count == 0) return 0;
  for (; count > 1; --count) partial[count - 2] += partial[count - 1];
  return partial[0];
}

double gradient_norm(Backend& backend, Tensor gradients, const SparseRows& sparse,
                     std::vector<double>& block_sums) {
  block_sums.resize(size_t((gradients.size() + kNormBlock - 1) / kNormBlock));
  backend.block_square_sums(gradients, sparse, block_sums.data());
  return std::sqrt(tree_sum(block_sums));
}

}  // namespace finetune
