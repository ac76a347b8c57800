// Boundaries of each owner's part of the dense parameters and the word rows.
#include "distributed/zero_partition.h"

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
  const Parameter* words = table.find(Role::word_embeddings, ParameterPart::weight);
  FINETUNE_CHECK(words == &table.parameters().back());
  return *words;
}

ZeroPartition::ZeroPartition(const ParameterTable& table, int hosts, int columns,
                             const std::vector<int64_t>& bucket_ends)
    : hosts_(hosts), columns_(columns) {
  const Parameter& words = word_embeddings(table);
  dense_ = words.offset;
  rows_ = words.shape[0];
  cols_ = words.shape[1];
  row_block_ = std::max<int64_t>(1, kNormBlock / cols_);
  int64_t begin = 0;
  for (int64_t end : bucket_ends) {
    FINETUNE_CHECK(end > begin && end <= dense_ && (end % kNormBlock == 0 || end == dense_));
    buckets_.push_back({begin, end});
    begin = end;
  }
  if (begin < dense_) buckets_.push_back({begin, dense_});
}

IndexRange ZeroPartition::dense(int owner, int bucket) const {
  const IndexRange whole = buckets_[size_t(bucket)];
  const IndexRange slice = in_blocks(whole.size(), kNormBlock, owners(), owner);
  return {whole.begin + slice.begin, whole.begin + slice.end};
}

IndexRange ZeroPartition::dense(int owner) const {
  FINETUNE_CHECK(buckets() == 1);
  return dense(owner, 0);
}

IndexRange ZeroPartition::rows(int owner) const {
  return in_blocks(rows_, row_block_, owners(), owner);
}

int ZeroPartition::owner_of(const Communicator& comm, int rank) const {
  int host = 0;
  while (rank >= comm.first_rank(host + 1)) ++host;
  const int column = rank - comm.first_rank(host);
  return column < columns_ ? owner(host, column) : -1;
}

IndexRange ZeroPartition::dense_of(const Communicator& comm, int rank, int bucket) const {
  const int owner = owner_of(comm, rank);
  return owner < 0 ? IndexRange{} : dense(owner, bucket);
}

IndexRange ZeroPartition::dense_of(const Communicator& comm, int rank) const {
  FINETUNE_CHECK(buckets() == 1);
  return dense_of(comm, rank, 0);
}

std::vector<IndexRange> ZeroPartition::slices_of(const Communicator& comm, int rank) const {
  std::vector<IndexRange> out;
  for (int bucket = 0; bucket < buckets(); ++bucket) out.push_back(dense_of(comm, rank, bucket));
  return out;
}

IndexRange ZeroPartition::rows_of(const Communicator& comm, int rank) const {
  const int owner = owner_of(comm, rank);
  return owner < 0 ? IndexRange{} : rows(owner);
}

IndexRange ZeroPartition::host_dense(int host) const {
  return {dense(owner(host, 0)).begin, dense(owner(host, columns_ - 1)).end};
}

IndexRange ZeroPartition::host_rows(int host) const {
  return {rows(owner(host, 0)).begin, rows(owner(host, columns_ - 1)).end};
}

int64_t ZeroPartition::dense_blocks(int owner, int bucket) const {
  return blocks_of(dense(owner, bucket).size(), kNormBlock);
}

int64_t ZeroPartition::dense_blocks(int owner) const {
  int64_t blocks = 0;
  for (int bucket = 0; bucket < buckets(); ++bucket) blocks += dense_blocks(owner, bucket);
  return blocks;
}

int64_t ZeroPartition::row_blocks(int owner) const {
  return blocks_of(rows(owner).size(), row_block_);
}

}  // namespace finetune
