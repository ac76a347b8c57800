#include "train/ownership.h"

#include <algorithm>

#include "core/error.h"
#include "ops/backend.h"

namespace finetune {
namespace {

int64_t blocks_of(int64_t count, int64_t block) {
  return (count + block - 1) / block;
}

IndexRange in_blocks(int64_t count, int64_t block, int owners, int owner) {
  const IndexRange blocks = part(blocks_of(count, block), owners, owner);
  return {std::min(count, blocks.begin * block), std::min(count, blocks.end * block)};
}

}  // namespace

const Parameter& word_embeddings(const ParameterTable& table) {
  const Parameter* words = table.find("bert.embeddings.word_embeddings.weight");
  FINETUNE_CHECK(words == &table.parameters().back());
  return *words;
}

Ownership::Ownership(const ParameterTable& table, int hosts, int columns)
    : hosts_(hosts), columns_(columns) {
  const Parameter& words = word_embeddings(table);
  dense_ = words.offset;
  rows_ = words.shape[0];
  cols_ = words.shape[1];
  row_block_ = std::max<int64_t>(1, kNormBlock / cols_);
}

IndexRange Ownership::dense(int owner) const {
  return in_blocks(dense_, kNormBlock, owners(), owner);
}

IndexRange Ownership::rows(int owner) const {
  return in_blocks(rows_, row_block_, owners(), owner);
}

int Ownership::owner_of(const Communicator& comm, int rank) const {
  int host = 0;
  while (rank >= comm.first_rank(host + 1)) ++host;
  const int column = rank - comm.first_rank(host);
  return column < columns_ ? owner(host, column) : -1;
}

IndexRange Ownership::dense_of(const Communicator& comm, int rank) const {
  const int owner = owner_of(comm, rank);
  return owner < 0 ? IndexRange{} : dense(owner);
}

IndexRange Ownership::rows_of(const Communicator& comm, int rank) const {
  const int owner = owner_of(comm, rank);
  return owner < 0 ? IndexRange{} : rows(owner);
}

IndexRange Ownership::host_dense(int host) const {
  return {dense(owner(host, 0)).begin, dense(owner(host, columns_ - 1)).end};
}

IndexRange Ownership::host_rows(int host) const {
  return {rows(owner(host, 0)).begin, rows(owner(host, columns_ - 1)).end};
}

int64_t Ownership::dense_blocks(int owner) const {
  return blocks_of(dense(owner).size(), kNormBlock);
}

int64_t Ownership::row_blocks(int owner) const {
  return blocks_of(rows(owner).size(), row_block_);
}

}  // namespace finetune
