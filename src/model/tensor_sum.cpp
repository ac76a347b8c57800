// Adds the partials of all tensor shards where one process has them.
#include "model/tensor_sum.h"

#include <vector>

#include "core/error.h"
#include "core/numeric/subtrees.h"

namespace finetune {
namespace {

class SoloTensorSum final : public TensorSum {
 public:
  explicit SoloTensorSum(int64_t shards) : shards_(shards) {
    std::vector<Subtree> leaves;
    for (int64_t shard = 0; shard < shards; ++shard) leaves.push_back({shard, 0});
    order_ = combine_subtrees(leaves, true).additions;
  }

  void add(Backend& backend, std::span<const Tensor> partials) override {
    FINETUNE_CHECK(int64_t(partials.size()) == shards_);
    additions_.clear();
    for (TreeAddition addition : order_) {
      additions_.push_back(
          {partials[size_t(addition.to)].f32(), partials[size_t(addition.from)].f32()});
    }
    if (!additions_.empty()) backend.merge(additions_, partials[0].size());
  }

 private:
  int64_t shards_;
  std::vector<TreeAddition> order_;
  std::vector<Addition> additions_;
};

}  // namespace

std::unique_ptr<TensorSum> make_solo_tensor_sum(int64_t tensor_shards) {
  return std::make_unique<SoloTensorSum>(tensor_shards);
}

}  // namespace finetune
