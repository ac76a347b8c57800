// Who sums and updates which part of the arenas. Two parts are dealt out apart: all but the word
// embedding by elements (dense), the word embedding by rows, most of which a batch does not have.
// Boundaries fall on those of norm blocks, so that every block of the gradient norm is summed whole
// by one process.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "data/plan.h"
#include "model/parameters.h"

namespace finetune {

const Parameter& word_embeddings(const ParameterTable& table);  // the arena's last parameter

class Ownership {
 public:
  // Owner number host * columns + column is the process with local rank `column` on that host.
  // Processes whose local rank is `columns` or more own nothing.
  Ownership(const ParameterTable& table, int hosts, int columns);

  int owners() const { return hosts_ * columns_; }
  int owner(int host, int column) const { return host * columns_ + column; }
  IndexRange dense(int owner) const;  // elements of the arena
  IndexRange rows(int owner) const;   // rows of the word embedding
  // The same of a process; empty where it owns nothing.
  IndexRange dense_of(const Communicator& comm, int rank) const;
  IndexRange rows_of(const Communicator& comm, int rank) const;
  IndexRange dense_of(const Communicator& comm) const { return dense_of(comm, comm.rank()); }
  IndexRange rows_of(const Communicator& comm) const { return rows_of(comm, comm.rank()); }
  // What the owners of a host have together: neighbours.
  IndexRange host_dense(int host) const;
  IndexRange host_rows(int host) const;

  int64_t dense_elements() const { return dense_; }  // where the word embedding begins
  int64_t row_count() const { return rows_; }        // of the word embedding
  int64_t cols() const { return cols_; }
  int64_t row_block() const { return row_block_; }  // rows of a norm block
  // Block sums of one owner: of its dense part, then of its rows.
  int64_t dense_blocks(int owner) const;
  int64_t row_blocks(int owner) const;

 private:
  int owner_of(const Communicator& comm, int rank) const;  // -1: none

  int hosts_, columns_;
  int64_t dense_, rows_, cols_, row_block_;
};

}  // namespace finetune
