// Parts of a model: norm blocks equal those of the whole; a part may lack embeddings.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "../model_parts.h"
#include "distributed/host_arena.h"
#include "distributed/reduce/gradient_reduce.h"
#include "distributed/step_totals.h"
#include "distributed/weight_gather.h"
#include "distributed/zero_partition.h"
#include "small_encoder.h"

using namespace finetune;
using test::PartLayout;

namespace {

constexpr Head kHead{HeadKind::sequence, 3};

// Layers of some norm blocks, words of several.
EncoderConfig config_with(int64_t layers) {
  return test::encoder_of(
      {.words = 700, .hidden = 96, .layers = layers, .heads = 4, .inner = 200, .positions = 40});
}

// Block sums of a gradient by their number in the whole model's order; each must occur once.
struct BlockSums {
  std::map<int64_t, double> sums;
  bool twice = false;

  void add(Backend& backend, const ZeroPartition& partition, std::vector<float>& gradient,
           int owner, bool replicated) {
    std::vector<double> own(size_t(partition.dense_blocks(owner) + partition.row_blocks(owner)));
    double* to = own.data();
    for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
      for (IndexRange run : partition.norm_runs(owner, bucket, replicated)) {
        CHECK(run.begin % kNormBlock == 0);
        CHECK(run.size() % kNormBlock == 0);
        backend.block_square_sums(vector(gradient.data() + run.begin, run.size()), kNormBlock, {},
                                  to);
        to += run.size() / kNormBlock;
      }
    }
    const IndexRange rows = partition.rows(owner);
    if (replicated) {
      const int64_t cols = partition.cols();
      backend.block_square_sums(
          vector(gradient.data() + partition.dense_elements() + rows.begin * cols,
                 rows.size() * cols),
          partition.row_block() * cols, {}, to);
      to += partition.row_blocks(owner);
    }
    const std::vector<int64_t> numbers = partition.norm_blocks(owner, replicated);
    REQUIRE(int64_t(numbers.size()) == to - own.data());
    for (size_t i = 0; i < numbers.size(); ++i) {
      twice = twice || !sums.emplace(numbers[i], own[i]).second;
    }
  }
};

std::vector<float> initial_values(const ParameterTable& table) {
  std::vector<float> values(size_t(table.size()), 0.0f);
  initialize(table, 1.0, 42, values.data());
  return values;
}

}  // namespace

TEST_CASE("the parts' norm blocks are the whole model's, each once") {
  auto backend = make_cpu_backend();
  const EncoderConfig config = config_with(5);
  for (PartLayout layout : test::kPartLayouts) {
    CAPTURE(layout.stages);
    CAPTURE(layout.tensor_ranks);
    CAPTURE(layout.tensor_shards);
    const ParameterTable whole(config, kHead, ModelPart::whole(config, layout.tensor_shards));
    std::vector<float> gradient = initial_values(whole);
    BlockSums expected;
    expected.add(*backend, ZeroPartition(whole, 1, 1), gradient, 0, true);
    int64_t number = 0;  // of a single process, in order
    for (const auto& [block, sum] : expected.sums) CHECK(block == number++);
    for (auto [hosts, columns, cut] : {std::tuple{1, 1, false}, {2, 2, false}, {1, 3, true}}) {
      BlockSums sums;
      for (const ModelPart& part : test::parts_of(config, layout)) {
        const ParameterTable table(config, kHead, part);
        std::vector<float> own = initial_values(table);
        const auto ends = ends_of(backward_buckets(table, 0, 1));
        const ZeroPartition partition(table, hosts, columns, cut ? ends : std::vector<int64_t>{});
        for (int owner = 0; owner < partition.owners(); ++owner) {
          sums.add(*backend, partition, own, owner, part.shards.begin == 0);
        }
      }
      CHECK(!sums.twice);
      CHECK(sums.sums == expected.sums);  // bit for bit
    }
  }
}

TEST_CASE("one owner of the whole model adds up all of its buckets in one run each") {
  const ParameterTable table(config_with(3), kHead);
  const ZeroPartition partition(table, 1, 2, ends_of(backward_buckets(table, 0, 1)));
  for (int owner : {0, 1}) {
    for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
      const IndexRange slice = partition.dense(owner, bucket);
      std::vector<IndexRange> expected;
      if (slice.size() > 0) expected.push_back(slice);
      CHECK(partition.norm_runs(owner, bucket) == expected);
    }
  }
}

TEST_CASE("buckets of a stage: its layers alone, to its last element") {
  const EncoderConfig config = config_with(4);
  for (const ModelPart& part : test::parts_of(config, {2, 2, 1, 1})) {
    const ParameterTable table(config, kHead, part);
    const std::vector<Bucket> buckets = backward_buckets(table, 0, 1);
    std::vector<int> layers;
    for (const Bucket& bucket : buckets) layers.push_back(bucket.layer);
    CHECK(layers == (part.head ? std::vector<int>{5, 4, 2} : std::vector<int>{3, 1, 0}));
    CHECK(buckets.back().elements.end == ZeroPartition(table, 1, 1).dense_elements());
    CHECK(backward_buckets(table, 3, 1).size() == (part.head ? 2 : 1));
  }
}

TEST_CASE("a stage without embeddings: partition, sums, moments, weights") {
  const EncoderConfig config = config_with(2);
  ModelPart part;
  part.chunks = {{1, 2}};
  part.embeddings = false;
  const ParameterTable table(config, kHead, part);
  CHECK(word_embeddings(table) == nullptr);
  auto comm = make_solo_communicator();
  const ZeroPartition partition(table, 1, 1);
  CHECK(partition.dense_elements() == table.size());
  CHECK(partition.dense(0) == IndexRange{0, table.size()});
  CHECK(partition.row_count() == 0);
  CHECK(partition.rows(0) == IndexRange{0, 0});
  CHECK(partition.row_blocks(0) == 0);
  for (bool staged : {false, true}) {
    auto backend = make_cpu_backend();
    TouchedRows touched(*backend, partition.row_count());
    touched.clear();
    touched.complete();
    const HostArena moments(*backend, *comm, partition);
    CHECK(moments.dense(table.size() - 1) == moments.data() + table.size() - 1);
    const auto sum = make_gradient_reduce(*backend, *comm, partition, table.size(), 3, staged);
    for (int shard = 0; shard < 3; ++shard) {
      std::fill_n(sum->leaf(0), table.size(), float(shard + 1));
      sum->push(touched, 0);
    }
    sum->reduce_scatter(touched);
    CHECK(std::count(sum->sum(), sum->sum() + table.size(), 6.0f) == table.size());
    std::vector<float> weights(size_t(table.size()), 1.0f);
    const auto gather =
        make_weight_gather(*backend, *comm, partition, weights.data(), false, staged);
    gather->publish();
    gather->all_gather(touched);
    gather->all_gather_all();
    CHECK(std::count(weights.begin(), weights.end(), 1.0f) == table.size());
    std::vector<int64_t> blocks(size_t(partition.dense_blocks(0)));
    std::iota(blocks.begin(), blocks.end(), 0);
    StepTotals totals(*backend, *comm, nullptr, {{0, 3}, true, blocks}, 3, 1.0);
    std::fill_n(totals.losses(), 3, 2.0);
    std::fill_n(totals.squares(), partition.dense_blocks(0), 4.0);
    StepOutcome outcome;
    totals.work_out(2.0);
    backend->finish_download(&outcome, sizeof outcome);
    CHECK(outcome.loss == 3.0);
    CHECK(outcome.gradient_norm ==
          doctest::Approx(std::sqrt(4.0 * double(partition.dense_blocks(0)))));
  }
}
