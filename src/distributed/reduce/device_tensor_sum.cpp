// Reduce-scatter and all-gather of partial sums from device to device.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/numeric/index_range.h"
#include "distributed/device/device_exchange.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/reduce/tensor_sums.h"
#include "distributed/touched_rows.h"

namespace finetune {
namespace {

constexpr int64_t kVector = 64;  // floats; shares are multiples of this

// The elements that a rank adds.
IndexRange share_of(int rank, int ranks, int64_t count) {
  return part_in_units(count, kVector, ranks, rank);
}

TreeCombination combined(int rank, int ranks, int64_t shards) {
  return combine_subtrees(leaves_of(part(shards, ranks, rank)), false);
}

class DeviceTensorSum final : public TensorSum {
 public:
  DeviceTensorSum(Backend& backend, GroupPeers& peers, Communicator& comm, int64_t shards,
                  int64_t most_floats)
      : peers_(peers), comm_(comm), rank_(comm.rank()), ranks_(comm.size()), copy_(backend) {
    FINETUNE_CHECK(shards % ranks_ == 0);
    std::vector<std::vector<Subtree>> all;
    for (int rank = 0; rank < ranks_; ++rank) {
      all.push_back(combined(rank, ranks_, shards).subtrees);
    }
    order_ = SubtreeOrder(all);
    own_ = combined(rank_, ranks_, shards);
    most_floats_ = most_floats;
    incoming_ = backend.allocate(
        size_t(device_tensor_sum_floats(rank_, ranks_, shards, most_floats)) * sizeof(float));
  }

  void add(Backend& backend, std::span<const Tensor> partials) override {
    const int64_t count = partials[0].size();
    FINETUNE_CHECK(count <= most_floats_);
    add_partials(backend, partials, own_.additions);
    const IndexRange share = share_of(rank_, ranks_, count);
    const std::vector<float*> terms = exchange_subtrees(partials, count);
    backend.merge(order_.additions(terms), share.size());
    float* sum = partials[0].f32();
    if (terms[0] != sum + share.begin) copy_(terms[0], sum + share.begin, share.size());
    gather_shares(sum, count);
  }

 private:
  using Parts = std::vector<DevicePeers::Part>;

  // Returns the addresses of all ranks' subtrees of this rank's share, in order.
  std::vector<float*> exchange_subtrees(std::span<const Tensor> partials, int64_t count) {
    const IndexRange share = share_of(rank_, ranks_, count);
    std::vector<float*> own;
    for (int i : own_.left) own.push_back(partials[size_t(i)].f32() + share.begin);
    const std::vector<float*> terms =
        order_.terms(rank_, own, static_cast<float*>(incoming_.get()), share.size());
    Parts out, in;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      const IndexRange theirs = share_of(rank, ranks_, count);
      for (int i : own_.left) {
        out.push_back({rank, partials[size_t(i)].f32() + theirs.begin, theirs.size()});
      }
      for (float* to : order_.of(rank, terms)) in.push_back({rank, to, share.size()});
    }
    exchange(out, in);
    return terms;
  }

  void gather_shares(float* sum, int64_t count) {
    const IndexRange own = share_of(rank_, ranks_, count);
    Parts out, in;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      const IndexRange theirs = share_of(rank, ranks_, count);
      out.push_back({rank, sum + own.begin, own.size()});
      in.push_back({rank, sum + theirs.begin, theirs.size()});
    }
    exchange(out, in);
  }

  void exchange(const Parts& out, const Parts& in) {
    peers_.exchange(out, in, DType::f32);
    comm_.count_sent(bytes_to_others(out, rank_));
  }

  GroupPeers& peers_;
  Communicator& comm_;
  const int rank_, ranks_;
  const DeviceCopy copy_;
  int64_t most_floats_ = 0;
  TreeCombination own_;  // of this rank's shards
  SubtreeOrder order_;   // of the subtrees of all ranks after each has added its own shards
  std::shared_ptr<void> incoming_;
};

}  // namespace

int64_t device_tensor_sum_floats(int rank, int ranks, int64_t tensor_shards, int64_t most_floats) {
  int64_t subtrees = 0;
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    subtrees += int64_t(combined(other, ranks, tensor_shards).subtrees.size());
  }
  const int64_t most = share_of(0, ranks, most_floats).size();  // the first share is the largest
  return subtrees * most;
}

std::unique_ptr<TensorSum> make_tensor_sum(Backend& backend, Communicator& comm, GroupPeers* peers,
                                           int64_t tensor_shards, int64_t most_floats) {
  if (!peers) return make_host_tensor_sum(comm, tensor_shards, most_floats);
  return std::make_unique<DeviceTensorSum>(backend, *peers, comm, tensor_shards, most_floats);
}

}  // namespace finetune
