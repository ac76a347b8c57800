#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/philox.h"
#include "data/packing.h"

using namespace finetune;

namespace {

void add(TokenizedSamples& set, const std::vector<int32_t>& ids, uint32_t second) {
  set.ids.insert(set.ids.end(), ids.begin(), ids.end());
  set.offsets.push_back(int64_t(set.ids.size()));
  set.second.push_back(second);
}

}  // namespace

TEST_CASE("samples lie end to end with their types, positions and places") {
  TokenizedSamples set;
  add(set, {101, 7, 8, 102}, 4);
  add(set, {101, 9, 102, 7, 102}, 3);
  add(set, {101, 102}, 2);
  PackedBatch batch;
  std::vector<uint32_t> indices = {1, 2, 0};
  pack(set, indices, std::vector<uint32_t>{5, 6, 7}, batch);

  CHECK(batch.ids == std::vector<int32_t>{101, 9, 102, 7, 102, 101, 102, 101, 7, 8, 102});
  CHECK(batch.types == std::vector<int32_t>{0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0});
  CHECK(batch.positions == std::vector<uint32_t>{0, 1, 2, 3, 4, 0, 1, 0, 1, 2, 3});
  CHECK(batch.token_samples == std::vector<uint32_t>{5, 5, 5, 5, 5, 6, 6, 7, 7, 7, 7});
  CHECK(batch.offsets == std::vector<int32_t>{0, 5, 7, 11});
  CHECK(batch.samples == std::vector<uint32_t>{5, 6, 7});
  CHECK(batch.indices == indices);
  CHECK(batch.order == std::vector<int32_t>{3, 8, 9, 1, 0, 5, 7, 2, 4, 6, 10});
  CHECK(batch.max_length == 5);
  CHECK(batch.tokens() == 11);
  CHECK(batch.sequences() == 3);

  pack(set, std::vector<uint32_t>{2}, {}, batch);  // memory of a larger batch is reused
  CHECK(batch.ids == std::vector<int32_t>{101, 102});
  CHECK(batch.order == std::vector<int32_t>{0, 1});
  CHECK(batch.offsets == std::vector<int32_t>{0, 2});
  CHECK(batch.max_length == 2);

  pack(set, {}, {}, batch);
  CHECK(batch.tokens() == 0);
  CHECK(batch.sequences() == 0);
  CHECK(batch.offsets == std::vector<int32_t>{0});
  CHECK(batch.max_length == 0);
}

TEST_CASE("the order by id is the stable one for every size of vocabulary") {
  for (uint32_t vocabulary : {1u, 2u, 300u, 512u, 513u, 30522u, 250002u, 2147483647u}) {
    std::vector<int32_t> ids(3000);
    for (uint32_t i = 0; i < ids.size(); ++i) {
      ids[i] = int32_t(philox({vocabulary, 1}, {i, 0, 0, 0})[0] % vocabulary);
    }
    TokenizedSamples set;
    add(set, ids, 0);
    PackedBatch batch;
    pack(set, std::vector<uint32_t>{0}, {}, batch);
    std::vector<int32_t> expected(ids.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int32_t a, int32_t b) { return ids[size_t(a)] < ids[size_t(b)]; });
    CHECK(batch.order == expected);
  }
}
