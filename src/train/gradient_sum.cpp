#include "train/gradient_sum.h"

#include <algorithm>

#include "train/node_sum.h"
#include "train/row_transfer.h"
#include "train/shard_sum.h"

namespace finetune {
namespace {

class SharedGradients final : public GradientSum {
 public:
  SharedGradients(Backend& backend, Communicator& comm, const Ownership& ownership,
                  int64_t elements, int64_t shards)
      : nodes_(backend, comm, ownership, elements, shards, arenas_of_shards),
        shards_(backend, ownership, part(shards, comm.size(), comm.rank()), nodes_.arena(0),
                nodes_.arena_floats()) {}

  IndexRange shards() const override { return shards_.shards(); }
  float* leaf() override { return shards_.leaf(); }
  void push(const NeededRows& needed) override { shards_.push(needed); }
  void reduce(const NeededRows& needed) override {
    shards_.finish();
    nodes_.reduce(needed);
  }
  float* sum() const override { return nodes_.sum(); }

 private:
  NodeSum nodes_;
  ShardSum shards_;  // in its arenas
};

class StagedGradients final : public GradientSum {
 public:
  StagedGradients(Backend& backend, Communicator& comm, const Ownership& ownership,
                  int64_t elements, int64_t shards)
      : backend_(backend),
        ownership_(ownership),
        own_dense_(ownership.dense_of(comm)),
        own_rows_(ownership.rows_of(comm)),
        host_(make_cpu_backend()),
        nodes_(*host_, comm, ownership, elements, shards, arenas_of_nodes),
        rows_(backend, ownership.row_count(), ownership.cols()) {
    const IndexRange own = part(shards, comm.size(), comm.rank());
    const int64_t arenas = std::max<int64_t>(1, ShardSum::arenas_needed(own));  // one for sums
    memory_ = backend.allocate(size_t(arenas * nodes_.arena_floats()) * sizeof(float));
    shards_ = std::make_unique<ShardSum>(backend, ownership, own, sum(), nodes_.arena_floats());
  }

  IndexRange shards() const override { return shards_->shards(); }
  float* leaf() override { return shards_->leaf(); }
  void push(const NeededRows& needed) override { shards_->push(needed); }

  void reduce(const NeededRows& needed) override {
    const IndexRange dense{0, ownership_.dense_elements()}, all{0, INT32_MAX};
    int64_t number = 0;
    for (float* node : shards_->finish()) {
      float* staged = nodes_.arena(number++);
      backend_.download(staged, node, bytes(dense));
      rows_.download(needed, all, node + dense.end, staged + dense.end);
      rows_.clear(needed, all, node + dense.end);
    }
    nodes_.reduce(needed);
    backend_.upload(sum() + own_dense_.begin, nodes_.sum() + own_dense_.begin, bytes(own_dense_));
    rows_.upload(needed, own_rows_, nodes_.sum() + dense.end, sum() + dense.end);
  }

  float* sum() const override { return static_cast<float*>(memory_.get()); }

 private:
  static size_t bytes(IndexRange elements) { return size_t(elements.size()) * sizeof(float); }

  Backend& backend_;
  const Ownership& ownership_;
  IndexRange own_dense_, own_rows_;
  std::unique_ptr<Backend> host_;  // adds in host memory
  NodeSum nodes_;                  // there
  RowTransfer rows_;
  std::shared_ptr<void> memory_;  // arenas of shards; the first one takes the sums
  std::unique_ptr<ShardSum> shards_;
};

}  // namespace

std::unique_ptr<GradientSum> make_gradient_sum(Backend& backend, Communicator& comm,
                                               const Ownership& ownership, int64_t elements,
                                               int64_t shards, bool staged) {
  if (staged) {
    return std::make_unique<StagedGradients>(backend, comm, ownership, elements, shards);
  }
  return std::make_unique<SharedGradients>(backend, comm, ownership, elements, shards);
}

}  // namespace finetune
