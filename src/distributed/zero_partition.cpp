// Computes the boundaries of each owner's dense parameters and word embedding rows.
#include "distributed/zero_partition.h"

#include <algorithm>

#include "core/error.h"
#include "ops/backend.h"

namespace finetune {
namespace {

IndexRange in_blocks(int64_t count, int64_t block, int owners, int owner) {
  const IndexRange blocks = part(divided_up(count, block), owners, owner);
  return {std::min(count, blocks.begin * block), std::min(count, blocks.end * block)};
}

}  // namespace

const Parameter* word_embeddings(const ParameterTable& table) {
  const Parameter* words = table.find(Role::word_embeddings, ParameterPart::weight);
  FINETUNE_CHECK(!words || words == &table.parameters().back());
  return words;
}

ZeroPartition::ZeroPartition(const ParameterTable& table, int hosts, int columns,
                             const std::vector<int64_t>& bucket_ends)
    : hosts_(hosts), columns_(columns) {
  const Parameter* words = word_embeddings(table);
  dense_ = words ? words->offset : table.size();
  rows_ = words ? words->shape[0] : 0;
  cols_ = words ? words->shape[1] : 1;
  row_block_ = std::max<int64_t>(1, kNormBlock / cols_);
  int64_t begin = 0;
  for (int64_t end : bucket_ends) {
    FINETUNE_CHECK(end > begin && end <= dense_ && end % kNormBlock == 0);
    buckets_.push_back({begin, end});
    begin = end;
  }
  if (begin < dense_) buckets_.push_back({begin, dense_});
  for (const Region& region : table.regions()) {
    if (region.elements.begin < dense_)
      regions_.push_back(region);
    else
      first_row_block_ = region.whole / kNormBlock;
  }
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
  return divided_up(dense(owner, bucket).size(), kNormBlock);
}

int64_t ZeroPartition::dense_blocks(int owner) const {
  int64_t blocks = 0;
  for (int bucket = 0; bucket < buckets(); ++bucket) blocks += dense_blocks(owner, bucket);
  return blocks;
}

int64_t ZeroPartition::row_blocks(int owner) const {
  return divided_up(rows(owner).size(), row_block_);
}

template <typename Visit>
void ZeroPartition::each_norm_run(int owner, int bucket, bool replicated, Visit&& visit) const {
  const IndexRange own = dense(owner, bucket);
  for (const Region& region : regions_) {
    if (region.shard == kReplicated && !replicated) continue;
    const IndexRange run{std::max(own.begin, region.elements.begin),
                         std::min(own.end, region.elements.end)};
    if (run.size() > 0) visit(run, region.whole + run.begin - region.elements.begin);
  }
}

std::vector<IndexRange> ZeroPartition::norm_runs(int owner, int bucket, bool replicated) const {
  std::vector<IndexRange> runs;
  each_norm_run(owner, bucket, replicated, [&](IndexRange run, int64_t) {
    if (!runs.empty() && runs.back().end == run.begin)
      runs.back().end = run.end;
    else
      runs.push_back(run);
  });
  return runs;
}

std::vector<int64_t> ZeroPartition::norm_blocks(int owner, bool replicated) const {
  std::vector<int64_t> numbers;
  for (int bucket = 0; bucket < buckets(); ++bucket) {
    each_norm_run(owner, bucket, replicated, [&](IndexRange run, int64_t whole) {
      for (int64_t i = 0; i < run.size(); i += kNormBlock) {
        numbers.push_back((whole + i) / kNormBlock);
      }
    });
  }
  if (!replicated) return numbers;
  const int64_t first = first_row_block_ + rows(owner).begin / row_block_;
  for (int64_t i = 0; i < row_blocks(owner); ++i) numbers.push_back(first + i);
  return numbers;
}

std::vector<Bucket> backward_buckets(const ParameterTable& table, int lowest_layer,
                                     int64_t least_bytes) {
  const Parameter* words = word_embeddings(table);
  const int64_t dense = words ? words->offset : table.size();
  std::vector<Bucket> buckets;
  int64_t begin = 0;
  const std::vector<Region>& regions = table.regions();
  for (size_t i = 0; i < regions.size() && regions[i].elements.begin < dense; ++i) {
    const int layer = regions[i].layer;
    if (layer < lowest_layer) break;
    const int64_t end = regions[i].elements.end;
    const bool dense_ends = end == dense;
    const int next = dense_ends ? -1 : regions[i + 1].layer;
    if (next == layer) continue;
    const bool last = next < lowest_layer;
    if (!last && (end - begin) * kFloatBytes < least_bytes) continue;
    buckets.push_back({{begin, end}, layer});
    begin = end;
  }
  return buckets;
}

std::vector<int64_t> ends_of(const std::vector<Bucket>& buckets) {
  std::vector<int64_t> ends;
  for (const Bucket& bucket : buckets) ends.push_back(bucket.elements.end);
  return ends;
}

std::vector<IndexRange> elements_of_chunks(const ParameterTable& table) {
  const std::vector<IndexRange>& layers = table.part().chunks;
  std::vector<IndexRange> elements(layers.size());
  const Parameter* words = word_embeddings(table);
  int64_t end = words ? words->offset : table.size();
  // From the bottom up: encoder layer i is region i + 1 of the table.
  const std::vector<Region>& regions = table.regions();
  size_t region = regions.size();
  for (size_t chunk = 0; chunk < layers.size(); ++chunk) {
    const bool last = chunk + 1 == layers.size();
    int64_t begin = end;
    while (region > 0 && (last || regions[region - 1].layer <= layers[chunk].end)) {
      begin = std::min(begin, regions[--region].elements.begin);
    }
    elements[chunk] = {begin, end};
    end = begin;
  }
  return elements;
}

}  // namespace finetune
