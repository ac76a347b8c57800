// Adds the partials of tensor shards through memory that the tensor ranks of a host share.
#include "distributed/reduce/tensor_ranks_sum.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/threads/parallel.h"

namespace finetune {
namespace {

constexpr int64_t kLine = 16;        // floats of a cache line
constexpr int64_t kGrain = 1 << 14;  // floats that are worth a thread
constexpr int kBuffers = 2;          // what is read of one sum may be there when the next begins

class SharedTensorSum final : public TensorSum {
 public:
  SharedTensorSum(Communicator& comm, int64_t shards, int64_t most_floats)
      : comm_(comm), stride_((most_floats + kLine - 1) / kLine * kLine) {
    FINETUNE_CHECK(comm.hosts() == 1 && shards % comm.size() == 0);
    std::vector<Subtree> all;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const IndexRange range = part(shards, comm.size(), rank);
      const TreeCombination combined = combine_subtrees(leaves_of(range), false);
      if (rank == comm.rank()) {
        own_shards_ = range.size();
        own_order_ = combined.additions;
        own_left_ = combined.left;
        first_place_ = int64_t(all.size());
      }
      all.insert(all.end(), combined.subtrees.begin(), combined.subtrees.end());
    }
    places_ = int64_t(all.size());
    order_ = combine_subtrees(all, true).additions;
    memory_ = comm.allocate_shared(size_t(kBuffers * places_ * stride_) * sizeof(float));
  }

  void add(Backend& backend, std::span<const Tensor> partials) override {
    FINETUNE_CHECK(int64_t(partials.size()) == own_shards_);
    const int64_t count = partials[0].size();
    FINETUNE_CHECK(count <= stride_);
    add_partials(backend, partials, own_order_);
    for (size_t i = 0; i < own_left_.size(); ++i) {
      backend.download(place(first_place_ + int64_t(i)), partials[size_t(own_left_[i])].data,
                       size_t(count) * sizeof(float));
    }
    comm_.host_barrier();
    const IndexRange share = share_of(count);
    add_share(share);
    comm_.host_barrier();
    backend.upload(partials[0].data, place(0), size_t(count) * sizeof(float));
    const int64_t others = comm_.size() - 1;
    comm_.count_sent(int64_t(sizeof(float)) *
                     (int64_t(own_left_.size()) * (count - share.size()) + others * share.size()));
    turn_ = (turn_ + 1) % kBuffers;
  }

 private:
  float* place(int64_t number) const {
    return static_cast<float*>(memory_.get()) + (turn_ * places_ + number) * stride_;
  }
  // Whole cache lines, but for the last.
  IndexRange share_of(int64_t count) const {
    const IndexRange lines = part((count + kLine - 1) / kLine, comm_.size(), comm_.rank());
    return {std::min(count, lines.begin * kLine), std::min(count, lines.end * kLine)};
  }

  void add_share(IndexRange share) const {
    parallel_ranges(share.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (TreeAddition addition : order_) {
        float* to = place(addition.to) + share.begin;
        const float* from = place(addition.from) + share.begin;
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      }
    });
  }

  Communicator& comm_;
  int64_t stride_;  // floats of a place
  int64_t own_shards_ = 0, first_place_ = 0, places_ = 0;
  std::vector<TreeAddition> own_order_, order_;  // of own shards; of all ranks' subtrees
  std::vector<int> own_left_;
  std::shared_ptr<void> memory_;
  int turn_ = 0;
};

}  // namespace

std::unique_ptr<TensorSum> make_shared_tensor_sum(Communicator& comm, int64_t tensor_shards,
                                                  int64_t most_floats) {
  return std::make_unique<SharedTensorSum>(comm, tensor_shards, most_floats);
}

}  // namespace finetune
