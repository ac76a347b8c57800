// Buckets: the pieces in which the dense gradient is exchanged, and their owners.
#include <doctest/doctest.h>

#include <algorithm>

#include "distributed/zero_partition.h"
#include "ops/backend.h"
#include "small_encoder.h"

using namespace finetune;

namespace {

EncoderConfig config_of(int64_t layers) {
  return test::encoder_of(
      {.words = 50, .hidden = 96, .layers = layers, .heads = 1, .inner = 200, .positions = 40});
}

// The end of the gradients of this layer and those above.
int64_t end_of(const ParameterTable& table, int layer) {
  int64_t end = 0;
  for (const Parameter& p : table.parameters()) {
    if (p.layer >= layer && &p != word_embeddings(table)) end = p.offset + p.size();
  }
  return end;
}

}  // namespace

TEST_CASE("a bucket has no gradients that are ready later than it") {
  const ParameterTable table(config_of(5), Head{HeadKind::sequence, 3});
  for (int lowest : {0, 1, 3, 6}) {
    for (int64_t least : {int64_t{1}, int64_t{400} << 10, int64_t{1} << 40}) {
      CAPTURE(lowest);
      CAPTURE(least);
      const std::vector<Bucket> buckets = backward_buckets(table, lowest, least);
      REQUIRE(!buckets.empty());
      int64_t begin = 0;
      for (const Bucket& bucket : buckets) {
        const bool last = &bucket == &buckets.back();
        CHECK(bucket.elements.begin == begin);
        CHECK(bucket.elements.begin % kNormBlock == 0);
        CHECK(bucket.elements.size() > 0);
        CHECK(bucket.layer >= lowest);
        if (last) {
          CHECK(bucket.layer == lowest);
        } else {
          CHECK(bucket.elements.size() * int64_t(sizeof(float)) >= least);
        }
        CHECK(bucket.elements.end >= end_of(table, bucket.layer));
        CHECK(bucket.elements.end < end_of(table, bucket.layer) + kNormBlock);
        begin = bucket.elements.end;
      }
      CHECK(begin <= word_embeddings(table)->offset);
      CHECK(begin < end_of(table, lowest) + kNormBlock);
    }
  }
  CHECK(backward_buckets(table, 0, 1).size() == 7);  // head, layers, embeddings
  CHECK(backward_buckets(table, 3, 1).size() == 4);
  CHECK(backward_buckets(table, 0, int64_t{1} << 40).size() == 1);
  CHECK(backward_buckets(table, 7, 1).empty());
}

TEST_CASE("each chunk has the gradients of its layers, the first one but for the words") {
  for (int stage : {0, 1}) {
    CAPTURE(stage);
    ModelPart part;
    for (int64_t block : {stage, stage + 2}) part.chunks.push_back({2 * block, 2 * block + 2});
    part.embeddings = stage == 0;
    part.head = stage == 1;
    const ParameterTable table(config_of(8), Head{HeadKind::sequence, 3}, part);
    const std::vector<IndexRange> elements = elements_of_chunks(table);
    REQUIRE(elements.size() == 2);
    CHECK(elements[1].begin == 0);
    CHECK(elements[1].end == elements[0].begin);
    const Parameter* words = word_embeddings(table);
    CHECK(elements[0].end == (words ? words->offset : table.size()));
    for (const Parameter& p : table.parameters()) {
      const bool upper = p.layer > part.chunks[0].end;
      CHECK((&p == words || elements[upper].contains(p.offset)));
    }
  }
}

TEST_CASE("owners have a slice of every bucket") {
  const ParameterTable table(config_of(5), Head{HeadKind::sequence, 3});
  for (int lowest : {0, 3}) {
    const auto ends = ends_of(backward_buckets(table, lowest, 1));
    for (const std::pair<int, int>& owners : {std::pair{1, 1}, {1, 3}, {2, 2}, {1, 16}}) {
      const int hosts = owners.first, columns = owners.second;
      CAPTURE(lowest);
      CAPTURE(hosts);
      CAPTURE(columns);
      const ZeroPartition partition(table, hosts, columns, ends), whole(table, 1, 1);
      CHECK(partition.buckets() == int(ends.size()) + (lowest > 0));
      int64_t end = 0, blocks = 0;
      for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
        int64_t most = 0, least = table.size();
        for (int owner = 0; owner < partition.owners(); ++owner) {
          const IndexRange slice = partition.dense(owner, bucket);
          CHECK(slice.begin == end);
          CHECK((slice.size() == 0 || slice.begin % kNormBlock == 0));
          end = slice.end;
          most = std::max(most, slice.size());
          least = std::min(least, slice.size());
          blocks += partition.dense_blocks(owner, bucket);
        }
        CHECK(most - least <= kNormBlock);
      }
      CHECK(end == partition.dense_elements());
      CHECK(blocks == whole.dense_blocks(0));
      int64_t together = 0;
      for (int owner = 0; owner < partition.owners(); ++owner) {
        together += partition.dense_blocks(owner);
      }
      CHECK(together == blocks);
    }
  }
}
