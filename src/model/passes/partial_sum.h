// Sums over tensor shards of one layer: of outputs, and of gradients of inputs.
#pragma once

#include <vector>

#include "model/encoder_layer.h"

namespace finetune {

// Sums of (rows, H) over the tensor shards. The first shard's partial is at `first`, where add()
// leaves the sum; the other partials are in working memory.
class PartialSum {
 public:
  PartialSum(const LayerPass& pass, Tensor first, const std::vector<int64_t>& places)
      : pass_(pass) {
    partials_.push_back(first);
    for (size_t i = 1; i < pass.shards.size(); ++i) {
      partials_.push_back(pass.at(places[i], first.rows, first.cols));
    }
  }
  Tensor of(size_t shard) const { return partials_[shard]; }
  Tensor add() const {
    if (pass_.cut()) pass_.sum->add(pass_.backend, partials_);
    return partials_[0];
  }

 private:
  const LayerPass& pass_;
  std::vector<Tensor> partials_;
};

// The gradient of the input of products whose inner dimension is cut. It is added to `gradient`, or
// written there if that is `fresh`: at once if there is one shard, else as the sum over all shards,
// by finish().
class InputGradient {
 public:
  InputGradient(const LayerPass& pass, Tensor gradient, const std::vector<int64_t>& places,
                bool fresh = false)
      : pass_(pass),
        gradient_(gradient),
        fresh_(fresh),
        sum_(pass,
             fresh || !pass.cut() ? gradient : pass.at(places[0], gradient.rows, gradient.cols),
             places) {}
  void add(size_t shard, Tensor dy, Tensor w) const {
    pass_.backend.linear_backward_input(dy, w, sum_.of(shard), !pass_.cut() && !fresh_);
  }
  void finish() const {
    if (!pass_.cut()) return;
    const Tensor sum = sum_.add();
    if (!fresh_) pass_.backend.add(sum, gradient_);
  }

 private:
  const LayerPass& pass_;
  Tensor gradient_;
  bool fresh_;
  PartialSum sum_;
};

}  // namespace finetune
