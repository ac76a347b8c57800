#include <algorithm>
#include <set>
#include <string>

#include "core/error.h"
#include "train/direct_exchange.h"
#include "train/row_transfer.h"
#include "train/shard_sum.h"

namespace finetune {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;  // elements of one node in flight

using Parts = std::vector<DevicePeers::Part>;

class DirectGradients final : public GradientSum {
 public:
  DirectGradients(Backend& backend, DevicePeers& peers, Communicator& comm,
                  const Ownership& ownership, int64_t elements, int64_t shards,
                  const DirectOptions& options)
      : backend_(backend),
        peers_(peers),
        comm_(comm),
        ownership_(ownership),
        options_(options),
        own_dense_(ownership.dense_of(comm)),
        own_rows_(ownership.rows_of(comm)),
        transfer_(backend, ownership.row_count(), ownership.cols()) {
    std::vector<TreeNode> all;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const std::vector<TreeNode> nodes = subtrees(part(shards, comm.size(), rank));
      nodes_of_.push_back(int64_t(nodes.size()));
      all.insert(all.end(), nodes.begin(), nodes.end());
    }
    additions_ = combine_nodes(all, true).additions;
    const IndexRange own = part(shards, comm.size(), comm.rank());
    const int64_t arenas = std::max<int64_t>(1, ShardSum::arenas_needed(own));
    const int64_t arena_floats = (elements + 15) / 16 * 16;
    memory_ = allocate(arenas * arena_floats);
    shards_ = std::make_unique<ShardSum>(backend, ownership, own, sum(), arena_floats);
    packed_ = allocate(std::max<int64_t>(1, nodes_of_[size_t(comm.rank())]) * options.most_rows *
                       ownership.cols());
    const int64_t own_rows = std::min(options.most_rows, own_rows_.size());
    const int64_t slice =
        std::max(std::min(kPiece, own_dense_.size()), own_rows * ownership.cols());
    incoming_ = allocate(options.deterministic ? int64_t(all.size()) * slice : 1);
    first_ = backend.allocate(sizeof(int32_t));  // zero
  }

  IndexRange shards() const override { return shards_->shards(); }
  float* leaf() override { return shards_->leaf(); }
  void push(const NeededRows& needed) override { shards_->push(needed); }
  float* sum() const override { return static_cast<float*>(memory_.get()); }

  void reduce(const NeededRows& needed) override {
    std::vector<float*> nodes = shards_->finish();
    if (options_.deterministic) {
      add_dense(nodes);
      add_rows(nodes, needed);
    } else {
      gather_nodes(nodes, needed);
      reduce_dense();
      reduce_rows(needed);
    }
    peers_.wait(options_.timeout);
  }

 private:
  std::shared_ptr<void> allocate(int64_t floats) {
    return backend_.allocate(size_t(floats) * sizeof(float));
  }
  float* packed() const { return static_cast<float*>(packed_.get()); }
  Tensor words(float* arena) const {
    return matrix(arena + ownership_.dense_elements(), ownership_.row_count(), ownership_.cols());
  }

  // Exchanges slices of all nodes: every process gets `count` elements of each for itself.
  // slice_for(own node, rank): what goes there. Then adds them: the sum is where the result says.
  template <typename Slice>
  float* add_slices(size_t own_nodes, int64_t count, Slice&& slice_for) {
    Parts out, in;
    std::vector<float*> all;
    float* to = static_cast<float*>(incoming_.get());
    for (int rank = 0; rank < comm_.size(); ++rank) {
      if (rank == comm_.rank()) {
        for (size_t i = 0; i < own_nodes; ++i) all.push_back(slice_for(i, rank).data);
        continue;
      }
      for (size_t i = 0; i < own_nodes; ++i) out.push_back(slice_for(i, rank));
      for (int64_t i = 0; i < nodes_of_[size_t(rank)]; ++i, to += count) {
        in.push_back({rank, to, count});
        all.push_back(to);
      }
    }
    peers_.exchange(out, in);
    std::vector<Addition> additions;
    for (const TreeAddition& a : additions_) {
      additions.push_back({all[size_t(a.to)], all[size_t(a.from)]});
    }
    backend_.merge(additions, count);
    return all[0];
  }

  void add_dense(const std::vector<float*>& nodes) {
    auto piece_of = [&](int rank, int64_t begin) {
      const IndexRange whole = ownership_.dense_of(comm_, rank);
      const int64_t from = std::min(whole.end, whole.begin + begin);
      return IndexRange{from, std::min(whole.end, from + kPiece)};
    };
    int64_t longest = 0;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      longest = std::max(longest, ownership_.dense_of(comm_, rank).size());
    }
    for (int64_t begin = 0; begin < longest; begin += kPiece) {
      const IndexRange own = piece_of(comm_.rank(), begin);
      float* result = add_slices(nodes.size(), own.size(), [&](size_t node, int rank) {
        const IndexRange piece = piece_of(rank, begin);
        return DevicePeers::Part{rank, nodes[node] + piece.begin, piece.size()};
      });
      float* home = sum() + own.begin;
      if (result == home || own.size() == 0) continue;
      backend_.scatter_rows(vector(result, own.size()), static_cast<int32_t*>(first_.get()),
                            vector(home, own.size()));  // a copy
    }
  }

  // Packs a node's rows, which are zero afterwards where they were.
  float* pack(float* node, size_t number, const NeededRows& needed) {
    const IndexRange all{0, ownership_.row_count()};
    const RowList list = needed.list(all);
    float* to = packed() + int64_t(number) * list.count * ownership_.cols();
    backend_.gather_rows(words(node), list.rows, matrix(to, list.count, ownership_.cols()));
    transfer_.clear(needed, all, words(node).f32());
    return to;
  }

  void unpack_own(float* from, const NeededRows& needed) {
    const RowList own = needed.list(own_rows_);
    backend_.scatter_rows(matrix(from, own.count, ownership_.cols()), own.rows, words(sum()));
  }

  void add_rows(const std::vector<float*>& nodes, const NeededRows& needed) {
    FINETUNE_CHECK(needed.list({0, INT32_MAX}).count <= options_.most_rows);
    std::vector<float*> rows;
    for (float* node : nodes) rows.push_back(pack(node, rows.size(), needed));
    const int64_t count = needed.list(own_rows_).count * ownership_.cols();
    float* result = add_slices(rows.size(), count, [&](size_t node, int rank) {
      return packed_rows(ownership_, comm_, needed, rows[node], rank);
    });
    unpack_own(result, needed);
  }

  // Own nodes into the sum's arena, which is zero where the process has none.
  void gather_nodes(const std::vector<float*>& nodes, const NeededRows& needed) {
    const IndexRange dense{0, ownership_.dense_elements()};
    if (nodes.empty()) {
      backend_.fill_zero(vector(sum(), dense.size()));
      return;
    }
    FINETUNE_CHECK(nodes[0] == sum());
    std::vector<Addition> additions;
    for (size_t i = 1; i < nodes.size(); ++i) additions.push_back({sum(), nodes[i]});
    add_arenas(backend_, ownership_, additions, dense, needed.list({0, INT32_MAX}));
  }

  void reduce_dense() {
    Parts parts;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const IndexRange theirs = ownership_.dense_of(comm_, rank);
      parts.push_back({rank, sum() + theirs.begin, theirs.size()});
    }
    peers_.reduce(parts);
  }

  void reduce_rows(const NeededRows& needed) {
    float* rows = pack(sum(), 0, needed);
    Parts parts;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      parts.push_back(packed_rows(ownership_, comm_, needed, rows, rank));
    }
    peers_.reduce(parts);
    unpack_own(parts[size_t(comm_.rank())].data, needed);
  }

  Backend& backend_;
  DevicePeers& peers_;
  Communicator& comm_;
  const Ownership& ownership_;
  DirectOptions options_;
  IndexRange own_dense_, own_rows_;
  RowTransfer transfer_;
  std::vector<int64_t> nodes_of_;  // of each process
  std::vector<TreeAddition> additions_;
  std::shared_ptr<void> memory_;  // arenas of shards; the first one takes the sums
  std::unique_ptr<ShardSum> shards_;
  std::shared_ptr<void> packed_, incoming_, first_;
};

}  // namespace

std::unique_ptr<DevicePeers> connect_devices(Backend& backend, Communicator& comm) {
  if (comm.size() == 1 || backend.uses_host_memory()) return nullptr;
  constexpr size_t kId = 16;
  std::string mine = backend.device_id(), all(kId * size_t(comm.size()), '\0');
  mine.resize(kId);
  comm.all_gather(mine.data(), kId, all.data());
  std::set<std::string> devices;
  for (size_t i = 0; i < all.size(); i += kId) devices.insert(all.substr(i, kId));
  if (devices.size() < size_t(comm.size())) return nullptr;  // some share one
  PeerId id{};
  if (comm.rank() == 0) id = backend.make_peer_id();
  comm.broadcast(id.data(), id.size(), 0);
  return backend.connect_peers(id, comm.rank(), comm.size());
}

DevicePeers::Part packed_rows(const Ownership& ownership, const Communicator& comm,
                              const NeededRows& needed, float* packed, int rank) {
  const IndexRange rows = ownership.rows_of(comm, rank);
  const int64_t before = needed.list({0, rows.begin}).count, cols = ownership.cols();
  return {rank, packed + before * cols, needed.list(rows).count * cols};
}

std::unique_ptr<GradientSum> make_direct_gradients(Backend& backend, DevicePeers& peers,
                                                   Communicator& comm, const Ownership& ownership,
                                                   int64_t elements, int64_t shards,
                                                   const DirectOptions& options) {
  return std::make_unique<DirectGradients>(backend, peers, comm, ownership, elements, shards,
                                           options);
}

}  // namespace finetune
