// The ZeRO partition, and gradient sums on one process; several processes: tests/mpi.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/numeric/philox.h"
#include "core/numeric/tree_sum.h"
#include "distributed/reduce/gradient_reduce.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/touched_rows.h"
#include "distributed/zero_partition.h"
#include "small_encoder.h"

using namespace finetune;

namespace {

EncoderConfig config_of(int64_t vocabulary, int64_t hidden) {
  return test::encoder_of({.words = vocabulary,
                           .hidden = hidden,
                           .layers = 1,
                           .heads = 1,
                           .inner = 2 * hidden,
                           .positions = 8});
}

// The owners' ranges cover [0, count) once, in order, and begin at multiples of `block`.
template <typename Range>
void check_cover(const ZeroPartition& partition, int64_t count, int64_t block, Range range) {
  int64_t end = 0;
  for (int owner = 0; owner < partition.owners(); ++owner) {
    const IndexRange own = range(owner);
    CHECK(own.begin == end);
    CHECK(own.end >= own.begin);
    if (own.size() > 0) CHECK(own.begin % block == 0);
    end = own.end;
  }
  CHECK(end == count);
}

// The gradient of shard k: values of widely different size, so that every order of additions
// differs.
float leaf_value(int64_t shard, int64_t element) {
  const PhiloxBlock bits = philox({7, 11}, {uint32_t(shard), uint32_t(element), 0, 0});
  const double exponent = 12 * (unit_interval(bits[1]) - 0.5);
  return float((unit_interval(bits[0]) - 0.5) * std::pow(10.0, exponent));
}

// The tree by its definition: full trees of the binary digits of n, folded from the smallest up.
float expected_sum(int64_t first, int64_t n, int64_t element) {
  if (n == 1) return leaf_value(first, element);
  int64_t largest = 1;
  while (largest * 2 < n) largest *= 2;
  return expected_sum(first, largest, element) +
         expected_sum(first + largest, n - largest, element);
}

}  // namespace

TEST_CASE("owners cover everything once, at boundaries of norm blocks") {
  for (const auto& sizes : {std::pair<int64_t, int64_t>{30522, 32}, {50, 16}, {7, 20000}}) {
    const int64_t vocabulary = sizes.first, hidden = sizes.second;
    const ParameterTable table(config_of(vocabulary, hidden), Head{HeadKind::sequence, 3});
    for (const std::pair<int, int>& owners :
         {std::pair{1, 1}, {1, 2}, {1, 3}, {2, 1}, {3, 2}, {2, 8}, {1, 64}}) {
      const int hosts = owners.first, columns = owners.second;
      CAPTURE(vocabulary);
      CAPTURE(hosts);
      CAPTURE(columns);
      const ZeroPartition partition(table, hosts, columns);
      REQUIRE(partition.owners() == hosts * columns);
      check_cover(partition, partition.dense_elements(), kNormBlock,
                  [&](int owner) { return partition.dense(owner); });
      check_cover(partition, vocabulary, partition.row_block(),
                  [&](int owner) { return partition.rows(owner); });
      CHECK(partition.dense_elements() == word_embeddings(table)->offset);
      CHECK(partition.cols() == hidden);
      int64_t dense_blocks = 0, row_blocks = 0;
      for (int host = 0; host < hosts; ++host) {
        const int first = partition.owner(host, 0), last = partition.owner(host, columns - 1);
        CHECK(partition.host_dense(host) ==
              IndexRange{partition.dense(first).begin, partition.dense(last).end});
        CHECK(partition.host_rows(host) ==
              IndexRange{partition.rows(first).begin, partition.rows(last).end});
        for (int owner = first; owner <= last; ++owner) {
          dense_blocks += partition.dense_blocks(owner);
          row_blocks += partition.row_blocks(owner);
        }
      }
      // The norm blocks equal those of a single owner.
      const ZeroPartition whole(table, 1, 1);
      CHECK(dense_blocks == whole.dense_blocks(0));
      CHECK(row_blocks == whole.row_blocks(0));
    }
  }
}

TEST_CASE("more owners than blocks: the last own nothing") {
  const ParameterTable table(config_of(50, 16), Head{HeadKind::sequence, 3});
  const ZeroPartition partition(table, 2, 8);
  CHECK(partition.dense(0).size() > 0);
  CHECK(partition.dense(15).size() == 0);
  CHECK(partition.rows(15).size() == 0);
  CHECK(partition.dense_blocks(15) == 0);
  CHECK(partition.row_blocks(15) == 0);
}

TEST_CASE("rows that a batch needs: each once, ascending, by ranges") {
  auto backend = make_reference_backend();
  TouchedRows touched(*backend, 100);
  for (int round = 0; round < 2; ++round) {
    touched.clear();
    touched.add(std::vector<int32_t>{99, 5, 5, 0});
    touched.add(std::vector<int32_t>{17, 5});
    touched.complete();
    auto rows = [&](IndexRange range) {
      const auto found = touched.within(range);
      const RowList list = touched.list(range);
      CHECK(list.count == int64_t(found.size()));
      for (int64_t i = 0; i < list.count; ++i) CHECK(list.rows[i] == found[size_t(i)]);
      return std::vector<int32_t>(found.begin(), found.end());
    };
    CHECK(rows({0, 100}) == std::vector<int32_t>{0, 5, 17, 99});
    CHECK(rows({5, 17}) == std::vector<int32_t>{5});
    CHECK(rows({18, 99}).empty());
    CHECK(rows({100, 100}).empty());
  }
  touched.clear();
  touched.complete();
  CHECK(touched.within({0, 100}).empty());
  CHECK_THROWS(touched.add(std::vector<int32_t>{100}));
}

namespace {

// `staged`: through host memory, like processes with a device each.
void check_sums_of_one_process(bool staged) {
  const ParameterTable table(config_of(40, 16), Head{HeadKind::sequence, 3});
  auto comm = make_solo_communicator();
  const ZeroPartition partition(table, 1, 1);
  const int64_t words = partition.dense_elements(), cols = partition.cols();
  for (bool reference : {true, false}) {
    auto backend = reference ? make_reference_backend() : make_cpu_backend();
    TouchedRows touched(*backend, 40);
    touched.add(std::vector<int32_t>{3, 39, 11});
    touched.complete();
    const std::vector<int64_t> rows = {3, 11, 39};
    auto elements = [&](auto&& visit) {
      for (int64_t i = 0; i < words; ++i) visit(i);
      for (int64_t row : rows) {
        for (int64_t c = 0; c < cols; ++c) visit(words + row * cols + c);
      }
    };
    for (int64_t shards = 1; shards <= 9; ++shards) {
      CAPTURE(shards);
      const auto gradients =
          make_gradient_reduce(*backend, *comm, partition, table.size(), shards, staged);
      GradientReduce& sum = *gradients;
      CHECK(sum.shards() == IndexRange{0, shards});
      std::vector<float*> arenas;
      for (int round = 0; round < 3; ++round) {
        CAPTURE(round);
        int64_t not_zero = 0, wrong = 0;
        for (int64_t k = 0; k < shards; ++k) {
          float* leaf = sum.leaf(0);
          CHECK(leaf == sum.leaf(0));
          if (std::find(arenas.begin(), arenas.end(), leaf) == arenas.end()) {
            arenas.push_back(leaf);
            leaf[words + 7 * cols + 1] = float(arenas.size());  // in a row that is not touched
          }
          elements([&](int64_t i) {
            not_zero += i >= words && leaf[i] != 0.0f;
            leaf[i] = leaf_value(k, i);
          });
          sum.push(touched, 0);
        }
        sum.reduce_scatter(touched);
        elements([&](int64_t i) {
          const float expected = expected_sum(0, shards, i);
          wrong += std::bit_cast<uint32_t>(expected) != std::bit_cast<uint32_t>(sum.sum()[i]);
          if (i >= words) sum.sum()[i] = 0;
        });
        CHECK(not_zero == 0);
        CHECK(wrong == 0);
        CHECK(int64_t(arenas.size()) == LocalReduce::arenas_needed({0, shards}));
        for (size_t a = 0; a < arenas.size(); ++a) {
          CHECK(arenas[a][words + 7 * cols + 1] == float(a + 1));
          arenas[a][words + 7 * cols + 1] = 0;
          bool zero = true;
          for (int64_t i = words; i < table.size(); ++i) zero = zero && arenas[a][i] == 0.0f;
          CHECK(zero);
          arenas[a][words + 7 * cols + 1] = float(a + 1);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("shards of one process are summed in the tree's order, and rows of zeros are left") {
  for (bool staged : {false, true}) {
    CAPTURE(staged);
    check_sums_of_one_process(staged);
  }
}

TEST_CASE("rows between device and host, in several pieces") {
  const int64_t rows = 150, cols = 20000;
  auto backend = make_cpu_backend();
  TouchedRows touched(*backend, rows);
  for (int32_t row = 1; row < rows; row += 2) touched.add(std::span(&row, 1));
  touched.complete();
  const IndexRange within{4, 140};
  std::vector<float> device(size_t(rows * cols)), host(device.size(), -1.0f);
  for (size_t i = 0; i < device.size(); ++i) device[i] = float(i + 1);
  RowTransfer transfer(*backend, rows, cols);
  const std::vector<float> original = device;
  auto wrong = [&](const std::vector<float>& matrix, auto&& expected) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t row = i / cols;
      const bool named = row % 2 == 1 && row >= within.begin && row < within.end;
      count += matrix[size_t(i)] != expected(named, i);
    }
    return count;
  };
  transfer.download(touched, within, device.data(), host.data());
  CHECK(wrong(host, [](bool named, int64_t i) { return named ? float(i + 1) : -1.0f; }) == 0);
  CHECK(device == original);
  transfer.clear(touched, within, device.data());
  CHECK(wrong(device, [](bool named, int64_t i) { return named ? 0.0f : float(i + 1); }) == 0);
  for (float& value : host) value += 1;
  transfer.upload(touched, within, host.data(), device.data());
  CHECK(wrong(device, [](bool named, int64_t i) { return float(named ? i + 2 : i + 1); }) == 0);
}

TEST_CASE("the norm of a gradient over several blocks") {
  auto backend = make_reference_backend();
  const int64_t count = 2 * kNormBlock + 17;
  std::vector<float> gradients(size_t(count), 0.0f);
  gradients[0] = 3.0f;
  gradients[size_t(kNormBlock)] = 4.0f;
  gradients[size_t(count - 1)] = 12.0f;
  std::vector<double> sums(3);
  backend->block_square_sums(vector(gradients.data(), count), kNormBlock, {}, sums.data());
  CHECK(sums == std::vector<double>{9.0, 16.0, 144.0});
  CHECK(std::sqrt(tree_sum(sums)) == 13.0);
}
