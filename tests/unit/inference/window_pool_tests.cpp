// Results of several windows reach an evaluation as one row, in order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "inference/window_pool.h"

using namespace finetune;

namespace {

class Rows final : public LogitsSink {
 public:
  void add(const PackedBatch& batch, const float* values) override {
    CHECK(batch.sequences() == int64_t(batch.indices.size()));
    indices.insert(indices.end(), batch.indices.begin(), batch.indices.end());
    logits.insert(logits.end(), values, values + 2 * batch.sequences());
    ++calls;
  }

  std::vector<uint32_t> indices;
  std::vector<float> logits;
  int calls = 0;
};

PackedBatch samples(uint32_t begin, uint32_t end) {
  PackedBatch batch;
  batch.samples.resize(end - begin);
  batch.indices.resize(end - begin);
  std::iota(batch.indices.begin(), batch.indices.end(), begin);
  return batch;
}

using Windows = std::vector<int64_t>;

}  // namespace

TEST_CASE("a row's logits are the mean of its windows', wherever batches end") {
  const std::vector<float> logits{1, -0.0f, 2, 4, 4, 8, 3, 3, .1f, .2f, .3f, .4f, .2f, .9f};
  const float mean = float((double(.1f) + double(.3f) + double(.2f)) / 3);
  for (uint32_t size : {1u, 2u, 3u, 7u}) {
    Rows rows;
    WindowPool pool(rows, 2);
    pool.expect(Windows{0, 1, 3});
    pool.expect(Windows{0});
    pool.expect(Windows{0, 1, 4});
    for (uint32_t begin = 0; begin < 7; begin += size) {
      pool.add(samples(begin, std::min(7u, begin + size)), logits.data() + 2 * begin);
    }
    CHECK(rows.indices == std::vector<uint32_t>{0, 1, 2, 3});
    REQUIRE(rows.logits.size() == 8);
    CHECK(std::signbit(rows.logits[1]));  // one window: its bits
    CHECK(std::vector<float>(rows.logits.begin(), rows.logits.begin() + 7) ==
          std::vector<float>{1, 0, 3, 6, 3, 3, mean});
  }
}

TEST_CASE("samples without windows go on as they came") {
  Rows rows;
  WindowPool pool(rows, 2);
  pool.expect({});
  const std::vector<float> logits{1, 2, 3, 4};
  pool.add(samples(5, 7), logits.data());
  CHECK(rows.indices == std::vector<uint32_t>{5, 6});
  CHECK(rows.logits == logits);
}

TEST_CASE("windows out of order, or more of them than are expected, are a bug") {
  Rows rows;
  WindowPool pool(rows, 2);
  pool.expect(Windows{0, 2});
  const std::vector<float> logits{1, 2, 3, 4, 5, 6};
  CHECK_THROWS_AS(pool.add(samples(1, 2), logits.data()), Error);
  WindowPool other(rows, 2);
  other.expect(Windows{0, 2});
  CHECK_THROWS_AS(other.add(samples(0, 3), logits.data()), Error);
}
