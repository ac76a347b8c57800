// Adds the partial sums of tensor shards through shared memory and between hosts.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/threads/parallel.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/reduce/tensor_sums.h"

namespace finetune {
namespace {

constexpr int64_t kLine = 16;        // floats of a cache line
constexpr int64_t kGrain = 1 << 14;  // fewest floats for another thread
constexpr int kBuffers = 2;          // one sum may still be read when the next begins

class HostTensorSum final : public TensorSum {
 public:
  HostTensorSum(Communicator& comm, int64_t shards, int64_t most_floats)
      : comm_(comm), stride_((most_floats + kLine - 1) / kLine * kLine) {
    FINETUNE_CHECK(shards % comm.size() == 0);
    std::vector<std::vector<Subtree>> all;
    for (int host = 0; host < comm.hosts(); ++host) all.push_back(subtrees_on(host, shards));
    hosts_ = SubtreeOrder(all);
    for (int rank = 0; rank < comm.size(); ++rank) {
      if (is_here(rank)) continue;
      if (peer_here(rank) == comm.rank()) served_.push_back(rank);
    }
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
    const IndexRange share = share_of(comm_.rank(), count);
    add_here(share);
    int64_t read = share.size();  // floats that this process read from others of its host
    for (int rank : served_) {
      add_here(share_of(rank, count));
      read += share_of(rank, count).size();
    }
    add_hosts(share, count);
    pass_on_sums(share, count);
    comm_.host_barrier();
    backend.upload(partials[0].data, place(0), size_t(count) * sizeof(float));
    comm_.count_sent(int64_t(sizeof(float)) * (int64_t(own_left_.size()) * (count - read) +
                                               (comm_.local_size() - 1) * read));
    turn_ = (turn_ + 1) % kBuffers;
  }

 private:
  // Returns the subtrees of a host's ranks together; for this host also notes this rank's place.
  std::vector<Subtree> subtrees_on(int host, int64_t shards) {
    std::vector<Subtree> written;
    for (int rank = comm_.first_rank(host); rank < comm_.first_rank(host + 1); ++rank) {
      const IndexRange range = part(shards, comm_.size(), rank);
      const TreeCombination combined = combine_subtrees(leaves_of(range), false);
      if (rank == comm_.rank()) {
        own_shards_ = range.size();
        own_order_ = combined.additions;
        own_left_ = combined.left;
        first_place_ = int64_t(written.size());
      }
      written.insert(written.end(), combined.subtrees.begin(), combined.subtrees.end());
    }
    const TreeCombination combined = combine_subtrees(written, false);
    if (host == comm_.host()) {
      places_ = int64_t(written.size());
      host_order_ = combined.additions;
      host_left_ = combined.left;
    }
    return combined.subtrees;
  }

  bool is_here(int rank) const {
    const int first = comm_.first_rank(comm_.host());
    return rank >= first && rank < first + comm_.local_size();
  }
  // The rank on `host` that exchanges with a rank of another host; its processes take turns.
  int peer_on(int host, int rank) const {
    const int first = comm_.first_rank(host), processes = comm_.first_rank(host + 1) - first;
    return first + (rank < first ? rank : rank - processes) % processes;
  }
  int peer_here(int rank) const { return peer_on(comm_.host(), rank); }

  float* place(int64_t number) const {
    return static_cast<float*>(memory_.get()) + (turn_ * places_ + number) * stride_;
  }
  // The elements that a rank adds: whole cache lines, except in the last share.
  IndexRange share_of(int rank, int64_t count) const {
    return part_in_units(count, kLine, comm_.size(), rank);
  }

  // Adds the subtrees of this host's ranks.
  void add_here(IndexRange share) const {
    std::vector<Addition> additions;
    for (TreeAddition a : host_order_) {
      additions.push_back({place(a.to) + share.begin, place(a.from) + share.begin});
    }
    add_terms(additions, share.size());
  }

  // Receives this process's share from the other hosts, sends theirs to the ranks that it serves,
  // and adds the whole tree; the root ends in place 0.
  void add_hosts(IndexRange share, int64_t count) {
    std::vector<float*> own;
    for (int number : host_left_) own.push_back(place(number) + share.begin);
    incoming_.resize(size_t(hosts_.incoming(comm_.host()) * share.size()));
    const std::vector<float*> terms =
        hosts_.terms(comm_.host(), own, incoming_.data(), share.size());
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (int rank : served_) {
      const IndexRange theirs = share_of(rank, count);
      for (int number : host_left_) {
        out.push_back({rank, place(number) + theirs.begin, bytes_of(theirs)});
      }
    }
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      for (float* to : hosts_.of(host, terms)) {
        in.push_back({peer_on(host, comm_.rank()), to, bytes_of(share)});
      }
    }
    if (comm_.hosts() > 1) comm_.exchange(out, in, kMessage);
    add_terms(hosts_.additions(terms), share.size());
    float* home = place(0) + share.begin;
    if (terms[0] != home) std::memcpy(home, terms[0], bytes_of(share));
  }

  // Sends this process's share of the sum to all other hosts and receives theirs.
  void pass_on_sums(IndexRange share, int64_t count) {
    if (comm_.hosts() == 1) return;
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      out.push_back({peer_on(host, comm_.rank()), place(0) + share.begin, bytes_of(share)});
    }
    for (int rank : served_) {
      const IndexRange theirs = share_of(rank, count);
      in.push_back({rank, place(0) + theirs.begin, bytes_of(theirs)});
    }
    comm_.exchange(out, in, kMessage);
  }

  static size_t bytes_of(IndexRange share) { return size_t(share.size()) * sizeof(float); }
  static void add_terms(std::span<const Addition> additions, int64_t count) {
    parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
      for (Addition a : additions) {
        for (int64_t i = begin; i < end; ++i) a.to[i] += a.from[i];
      }
    });
  }

  static constexpr LinkMessage kMessage{"sums of tensor shards"};

  Communicator& comm_;
  int64_t stride_;  // floats between places
  int64_t own_shards_ = 0, first_place_ = 0, places_ = 0;
  // Additions of own shards, and of the subtrees that this host's ranks write.
  std::vector<TreeAddition> own_order_, host_order_;
  std::vector<int> own_left_, host_left_;
  SubtreeOrder hosts_;       // of the subtrees that remain on all hosts
  std::vector<int> served_;  // ranks of other hosts that exchange their shares with this one
  std::shared_ptr<void> memory_;
  std::vector<float> incoming_;
  int turn_ = 0;
};

}  // namespace

std::unique_ptr<TensorSum> make_host_tensor_sum(Communicator& comm, int64_t tensor_shards,
                                                int64_t most_floats) {
  return std::make_unique<HostTensorSum>(comm, tensor_shards, most_floats);
}

}  // namespace finetune
