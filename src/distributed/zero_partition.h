// ZeRO partition: which process sums and updates which part of the parameters. The word embedding
// is divided by rows, since a batch touches few of them; all other parameters (dense) by elements.
// Boundaries are those of norm blocks, so that each block of the gradient norm is summed by one
// process.
//
// The dense part can be cut into buckets. Every owner has a slice of each bucket, so that an
// exchange of one bucket involves all owners.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "data/plan.h"
#include "model/parameters.h"

namespace finetune {

// The arena's last parameter, or null in a part of the model without embeddings.
const Parameter* word_embeddings(const ParameterTable& table);

class ZeroPartition {
 public:
  // `table` need not outlive this. Without word embeddings there are 0 rows of 1 column. Owner
  // host * columns + column is the process with local rank `column` on that host. Processes with
  // local rank >= `columns` own nothing. `bucket_ends`: ascending boundaries of norm blocks where
  // buckets end; the elements behind the last one form another bucket. Empty: one bucket.
  ZeroPartition(const ParameterTable& table, int hosts, int columns,
                const std::vector<int64_t>& bucket_ends = {});

  int owners() const { return hosts_ * columns_; }
  int owner(int host, int column) const { return host * columns_ + column; }
  int buckets() const { return int(buckets_.size()); }
  IndexRange dense(int owner, int bucket) const;  // elements of the arena
  IndexRange dense(int owner) const;              // with one bucket
  IndexRange rows(int owner) const;               // rows of the word embedding
  // The same for a process; empty if it owns nothing.
  IndexRange dense_of(const Communicator& comm, int rank, int bucket) const;
  IndexRange dense_of(const Communicator& comm, int rank) const;
  IndexRange rows_of(const Communicator& comm, int rank) const;
  IndexRange dense_of(const Communicator& comm) const { return dense_of(comm, comm.rank()); }
  IndexRange rows_of(const Communicator& comm) const { return rows_of(comm, comm.rank()); }
  // The slices of a process in all buckets, in order.
  std::vector<IndexRange> slices_of(const Communicator& comm, int rank) const;
  // The elements of a host's owners together, with one bucket; they are contiguous.
  IndexRange host_dense(int host) const;
  IndexRange host_rows(int host) const;

  int64_t dense_elements() const { return dense_; }  // the word embedding begins here
  int64_t row_count() const { return rows_; }        // of the word embedding
  int64_t cols() const { return cols_; }
  int64_t row_block() const { return row_block_; }  // rows of a norm block
  // Block sums of one owner: of its dense slices, then of its rows.
  int64_t dense_blocks(int owner, int bucket) const;
  int64_t dense_blocks(int owner) const;  // of all buckets
  int64_t row_blocks(int owner) const;

  // For a model cut into parts. Of several tensor ranks only the first one adds replicated
  // parameters (`replicated` also applies to the word embedding). Returns the runs of whole blocks
  // that an owner adds in its slice of a bucket, in order, with adjacent runs joined.
  std::vector<IndexRange> norm_runs(int owner, int bucket, bool replicated = true) const;
  // The numbers in the whole model of all blocks that an owner adds: of its slices, then of its
  // rows. Over all parts each number occurs once.
  std::vector<int64_t> norm_blocks(int owner, bool replicated = true) const;

 private:
  int owner_of(const Communicator& comm, int rank) const;  // -1: owns nothing
  // Calls visit(run, its start in the whole model's arena) for each region.
  template <typename Visit>
  void each_norm_run(int owner, int bucket, bool replicated, Visit&& visit) const;

  int hosts_, columns_;
  int64_t dense_, rows_, cols_, row_block_;
  std::vector<IndexRange> buckets_;
  std::vector<Region> regions_;  // of the dense part
  int64_t first_row_block_ = 0;  // number of the first norm block in the word embedding
};

// Gradient buckets: pieces of the dense gradient, in the order in which the backward pass
// finishes them. A finished bucket can be sent while the layers below are computed.
struct Bucket {
  IndexRange elements;  // of the arena, between boundaries of norm blocks
  int layer = 0;        // the bucket is ready when this layer's gradient is
};

// Joins layers in the table's order into buckets of at least `least_bytes`. The buckets follow each
// other from element 0; the elements behind the last one are untrained or the word embedding. The
// result is the same on every process.
std::vector<Bucket> backward_buckets(const ParameterTable& table, int lowest_layer,
                                     int64_t least_bytes);

std::vector<int64_t> ends_of(const std::vector<Bucket>& buckets);

// The dense gradient of each chunk of the table's part. The ranges are adjacent in the arena, the
// last chunk first; the first chunk includes the embeddings except the word embedding.
std::vector<IndexRange> elements_of_chunks(const ParameterTable& table);

}  // namespace finetune
