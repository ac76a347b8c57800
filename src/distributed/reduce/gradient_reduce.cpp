// Gradient reduction through host memory: for the CPU, and staged for devices.
#include "distributed/reduce/gradient_reduce.h"

#include <algorithm>
#include <utility>

#include "distributed/reduce/local_reduce.h"
#include "distributed/reduce/subtree_reduce.h"
#include "distributed/touched_rows.h"

namespace finetune {
namespace {

class SharedReduce final : public GradientReduce {
 public:
  SharedReduce(Backend& backend, Communicator& comm, const ZeroPartition& partition,
               int64_t elements, int64_t shards, std::vector<IndexRange> chunks)
      : subtrees_(backend, comm, partition, elements, shards, arenas_of_shards),
        shards_(backend, partition, part(shards, comm.size(), comm.rank()), subtrees_.arena(0),
                subtrees_.arena_floats(), std::move(chunks)) {}

  IndexRange shards() const override { return shards_.shards(); }
  float* leaf(int chunk) override { return shards_.leaf(chunk); }
  void push(const TouchedRows& touched, int chunk) override { shards_.push(touched, chunk); }
  void reduce_scatter(const TouchedRows& touched) override {
    shards_.finish();
    subtrees_.reduce_scatter(touched);
  }
  float* sum() const override { return subtrees_.sum(); }

 private:
  SubtreeReduce subtrees_;
  LocalReduce shards_;  // in its own arenas
};

class StagedReduce final : public GradientReduce {
 public:
  StagedReduce(Backend& backend, Communicator& comm, const ZeroPartition& partition,
               int64_t elements, int64_t shards, std::vector<IndexRange> chunks)
      : backend_(backend),
        partition_(partition),
        own_dense_(partition.dense_of(comm)),
        own_rows_(partition.rows_of(comm)),
        host_(make_cpu_backend()),
        subtrees_(*host_, comm, partition, elements, shards, arenas_of_subtrees),
        rows_(backend, partition.row_count(), partition.cols()) {
    const IndexRange own = part(shards, comm.size(), comm.rank());
    // one for the sums
    const int64_t arenas = std::max<int64_t>(1, LocalReduce::arenas_needed(own));
    memory_ = backend.allocate(size_t(arenas * subtrees_.arena_floats()) * sizeof(float));
    shards_ = std::make_unique<LocalReduce>(backend, partition, own, sum(),
                                            subtrees_.arena_floats(), std::move(chunks));
  }

  IndexRange shards() const override { return shards_->shards(); }
  float* leaf(int chunk) override { return shards_->leaf(chunk); }
  void push(const TouchedRows& touched, int chunk) override { shards_->push(touched, chunk); }

  void reduce_scatter(const TouchedRows& touched) override {
    const IndexRange dense{0, partition_.dense_elements()}, all{0, INT32_MAX};
    int64_t number = 0;
    for (float* subtree : shards_->finish()) {
      float* staged = subtrees_.arena(number++);
      backend_.download(staged, subtree, bytes(dense));
      rows_.download(touched, all, subtree + dense.end, staged + dense.end);
      rows_.clear(touched, all, subtree + dense.end);
    }
    subtrees_.reduce_scatter(touched);
    backend_.upload(sum() + own_dense_.begin, subtrees_.sum() + own_dense_.begin,
                    bytes(own_dense_));
    rows_.upload(touched, own_rows_, subtrees_.sum() + dense.end, sum() + dense.end);
  }

  float* sum() const override { return static_cast<float*>(memory_.get()); }

 private:
  static size_t bytes(IndexRange elements) { return size_t(elements.size()) * sizeof(float); }

  Backend& backend_;
  const ZeroPartition& partition_;
  IndexRange own_dense_, own_rows_;
  std::unique_ptr<Backend> host_;  // adds in host memory
  SubtreeReduce subtrees_;         // in host memory
  RowTransfer rows_;
  std::shared_ptr<void> memory_;  // arenas of shards; the first receives the sums
  std::unique_ptr<LocalReduce> shards_;
};

}  // namespace

std::unique_ptr<GradientReduce> make_gradient_reduce(Backend& backend, Communicator& comm,
                                                     const ZeroPartition& partition,
                                                     int64_t elements, int64_t shards, bool staged,
                                                     std::vector<IndexRange> chunks) {
  if (staged) {
    return std::make_unique<StagedReduce>(backend, comm, partition, elements, shards,
                                          std::move(chunks));
  }
  return std::make_unique<SharedReduce>(backend, comm, partition, elements, shards,
                                        std::move(chunks));
}

}  // namespace finetune
