// ZeRO partition: which process sums and updates which part of the parameters.
// Two parts are divided apart: all but the word embedding by elements (dense), the word embedding
// by rows, most of which a batch does not have. Boundaries fall on those of norm blocks, so that
// every block of the gradient norm is summed whole by one process.
//
// The dense part can be cut into buckets, of each of which every owner has a slice: what is
// exchanged bucket by bucket then comes from all and goes to all, each time.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "data/plan.h"
#include "model/parameters.h"

namespace finetune {

// The arena's last parameter; null in a part of the model that has no embeddings.
const Parameter* word_embeddings(const ParameterTable& table);

class ZeroPartition {
 public:
  // `table` need not outlive this. Without word embeddings: no rows, of one column.
  // Owner number host * columns + column is the process with local rank `column` on that host.
  // Processes whose local rank is `columns` or more own nothing.
  // `bucket_ends`: where buckets end, ascending, at boundaries of norm blocks; what lies behind the
  // last one is a bucket too. None: one bucket.
  ZeroPartition(const ParameterTable& table, int hosts, int columns,
                const std::vector<int64_t>& bucket_ends = {});

  int owners() const { return hosts_ * columns_; }
  int owner(int host, int column) const { return host * columns_ + column; }
  int buckets() const { return int(buckets_.size()); }
  IndexRange dense(int owner, int bucket) const;  // elements of the arena
  IndexRange dense(int owner) const;              // where there is one bucket
  IndexRange rows(int owner) const;               // rows of the word embedding
  // The same of a process; empty where it owns nothing.
  IndexRange dense_of(const Communicator& comm, int rank, int bucket) const;
  IndexRange dense_of(const Communicator& comm, int rank) const;
  IndexRange rows_of(const Communicator& comm, int rank) const;
  IndexRange dense_of(const Communicator& comm) const { return dense_of(comm, comm.rank()); }
  IndexRange rows_of(const Communicator& comm) const { return rows_of(comm, comm.rank()); }
  // A process's slices of all buckets in order.
  std::vector<IndexRange> slices_of(const Communicator& comm, int rank) const;
  // What the owners of a host have together, where there is one bucket: neighbours.
  IndexRange host_dense(int host) const;
  IndexRange host_rows(int host) const;

  int64_t dense_elements() const { return dense_; }  // where the word embedding begins
  int64_t row_count() const { return rows_; }        // of the word embedding
  int64_t cols() const { return cols_; }
  int64_t row_block() const { return row_block_; }  // rows of a norm block
  // Block sums of one owner: of its slices of the dense part, then of its rows.
  int64_t dense_blocks(int owner, int bucket) const;
  int64_t dense_blocks(int owner) const;  // of all buckets
  int64_t row_blocks(int owner) const;

  // The same where the model is cut into parts. Of tensor ranks only the first one adds up what
  // all of them have (`replicated`: the word embedding, too). Runs of whole blocks of an owner's
  // slice of a bucket that it adds up, in order, neighbours joined:
  std::vector<IndexRange> norm_runs(int owner, int bucket, bool replicated = true) const;
  // and all blocks that it adds up, of its slices, then of its rows, each by its number among those
  // of the whole model: of all parts together every number once.
  std::vector<int64_t> norm_blocks(int owner, bool replicated = true) const;

 private:
  int owner_of(const Communicator& comm, int rank) const;  // -1: none
  // visit(run, where it begins in the whole model's arena), region by region.
  template <typename Visit>
  void each_norm_run(int owner, int bucket, bool replicated, Visit&& visit) const;

  int hosts_, columns_;
  int64_t dense_, rows_, cols_, row_block_;
  std::vector<IndexRange> buckets_;
  std::vector<Region> regions_;  // of the dense part
  int64_t first_row_block_ = 0;  // number of the word embedding's first norm block
};

}  // namespace finetune
