// Adds the partials of all tensor shards if one process has them.
#include "model/tensor_sum.h"

#include <vector>

#include "core/error.h"

namespace finetune {
namespace {

class SoloTensorSum final : public TensorSum {
 public:
  explicit SoloTensorSum(int64_t shards)
      : shards_(shards), order_(combine_subtrees(leaves_of({0, shards}), true).additions) {}

  void add(Backend& backend, std::span<const Tensor> partials) override {
    FINETUNE_CHECK(int64_t(partials.size()) == shards_);
    add_partials(backend, partials, order_);
  }
  bool may_be_replayed() const override { return true; }

 private:
  int64_t shards_;
  std::vector<TreeAddition> order_;
};

}  // namespace

void add_partials(Backend& backend, std::span<const Tensor> partials,
                  std::span<const TreeAddition> order) {
  if (order.empty()) return;
  std::vector<Addition> additions;
  for (TreeAddition addition : order) {
    additions.push_back(
        {partials[size_t(addition.to)].f32(), partials[size_t(addition.from)].f32()});
  }
  backend.merge(additions, partials[0].size());
}

std::unique_ptr<TensorSum> make_solo_tensor_sum(int64_t tensor_shards) {
  return std::make_unique<SoloTensorSum>(tensor_shards);
}

}  // namespace finetune
