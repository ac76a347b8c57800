// The batch plan: every sample once, in one order, for any number of processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "data/plan.h"

using namespace finetune;

namespace {

// All samples that the processes of an epoch compute, in the order of the shards.
std::vector<uint32_t> epoch_samples(int64_t count, int64_t batch, int64_t shards,
                                    int64_t processes) {
  std::vector<uint32_t> order = epoch_order(count, 42, 3, true);
  std::vector<uint32_t> seen;
  for (int64_t step = 0; step < steps_per_epoch(count, batch); ++step) {
    IndexRange range = batch_range(count, batch, step);
    for (int64_t process = 0; process < processes; ++process) {
      IndexRange own = part(shards, processes, process);
      for (int64_t shard = own.begin; shard < own.end; ++shard) {
        IndexRange samples = part(range.size(), shards, shard);
        for (int64_t i = samples.begin; i < samples.end; ++i) {
          seen.push_back(order[size_t(range.begin + i)]);
        }
      }
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("every sample once per epoch, in one order, for any number of processes and shards") {
  for (int64_t count : {1, 2, 7, 31, 32, 33, 100, 257}) {
    std::vector<uint32_t> order = epoch_order(count, 42, 3, true);
    std::vector<uint32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < count; ++i) REQUIRE(sorted[size_t(i)] == i);
    for (int64_t batch : {1, 3, 32, 1000}) {
      for (int64_t shards : {1, 2, 3, 8, 64}) {
        for (int64_t processes : {1, 2, 3, 8}) {
          if (processes > shards) continue;
          REQUIRE(epoch_samples(count, batch, shards, processes) == order);
        }
      }
    }
  }
}

TEST_CASE("the last batch keeps its true size") {
  CHECK(steps_per_epoch(0, 32) == 0);
  CHECK(steps_per_epoch(64, 32) == 2);
  CHECK(steps_per_epoch(65, 32) == 3);
  CHECK(batch_range(65, 32, 2) == IndexRange{64, 65});
  CHECK(batch_range(5, 32, 0) == IndexRange{0, 5});
  CHECK_THROWS(batch_range(65, 32, 3));
}

TEST_CASE("parts differ by at most one, larger first, and may be empty") {
  CHECK(part(10, 4, 0) == IndexRange{0, 3});
  CHECK(part(10, 4, 1) == IndexRange{3, 6});
  CHECK(part(10, 4, 2) == IndexRange{6, 8});
  CHECK(part(10, 4, 3) == IndexRange{8, 10});
  CHECK(part(2, 4, 1) == IndexRange{1, 2});
  CHECK(part(2, 4, 2).size() == 0);
  CHECK(part(2, 4, 3) == IndexRange{2, 2});
  CHECK(part(0, 3, 2) == IndexRange{0, 0});
}

TEST_CASE("shards have as many samples and about as many tokens") {
  using Order = std::vector<uint32_t>;
  CHECK(shard_order(std::vector<int64_t>{3, 9, 4}, 1) == Order{0, 1, 2});
  // 9 | 8, then 7 to the second, 3 and 2 to the first, 1 to the second: each has three samples.
  CHECK(shard_order(std::vector<int64_t>{9, 8, 1, 7, 2, 3}, 2) == Order{0, 4, 5, 1, 2, 3});
  // Equal lengths alternate; a full shard takes no more.
  CHECK(shard_order(std::vector<int64_t>{7, 7, 7, 7, 7}, 2) == Order{0, 2, 4, 1, 3});
  CHECK(shard_order(std::vector<int64_t>{1, 1, 50}, 2) == Order{1, 2, 0});
  CHECK(shard_order(std::vector<int64_t>{5, 6}, 4) == Order{1, 0});
  CHECK(shard_order({}, 3).empty());

  std::vector<int64_t> lengths;
  for (uint32_t i = 0; i < 64; ++i) lengths.push_back(4 + int64_t(i * 2654435761u % 61));
  for (int64_t shards : {2, 3, 8, 64}) {
    const Order order = shard_order(lengths, shards);
    Order sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t i = 0; i < 64; ++i) REQUIRE(sorted[i] == i);
    int64_t least = INT64_MAX, most = 0;
    for (int64_t k = 0; k < shards; ++k) {
      const IndexRange range = part(64, shards, k);
      int64_t tokens = 0;
      for (int64_t i = range.begin; i < range.end; ++i) tokens += lengths[order[size_t(i)]];
      REQUIRE(std::is_sorted(order.begin() + range.begin, order.begin() + range.end));
      least = std::min(least, tokens);
      most = std::max(most, tokens);
    }
    if (shards <= 8) CHECK(most - least < 16);
  }
}

TEST_CASE("the order depends on seed, epoch and count alone") {
  std::vector<uint32_t> order = epoch_order(1000, 42, 0, true);
  CHECK(epoch_order(1000, 42, 0, true) == order);
  CHECK(epoch_order(1000, 43, 0, true) != order);
  CHECK(epoch_order(1000, 42 + (uint64_t{1} << 40), 0, true) != order);
  CHECK(epoch_order(1000, 42, 1, true) != order);
  CHECK(epoch_order(1000, 42, int64_t{1} << 32, true) != order);
  std::vector<uint32_t> plain(1000);
  std::iota(plain.begin(), plain.end(), 0u);
  CHECK(order != plain);
  CHECK(epoch_order(1000, 42, 5, false) == plain);
  CHECK(epoch_order(0, 42, 0, true).empty());
}

TEST_CASE("all orders of a few samples are equally likely") {
  // 24 orders of 4 samples, 24,000 draws: chi-squared with 23 degrees of freedom exceeds 49.7 once
  // in a thousand times (and, the draws being fixed, always or never here).
  std::vector<int> seen(256, 0);
  for (int64_t epoch = 0; epoch < 24000; ++epoch) {
    std::vector<uint32_t> order = epoch_order(4, 7, epoch, true);
    ++seen[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6];
  }
  double chi_squared = 0;
  int orders = 0;
  for (int times : seen) {
    if (times == 0) continue;
    ++orders;
    chi_squared += (times - 1000.0) * (times - 1000.0) / 1000.0;
  }
  CHECK(orders == 24);
  CHECK(chi_squared < 49.7);
}

TEST_CASE("micro-batches keep to the limit of tokens") {
  using Ranges = std::vector<IndexRange>;
  std::vector<int64_t> lengths = {10, 20, 30, 5, 100, 1};
  CHECK(micro_batches(lengths, 60) == Ranges{{0, 3}, {3, 4}, {4, 5}, {5, 6}});
  CHECK(micro_batches(lengths, 59) == Ranges{{0, 2}, {2, 4}, {4, 5}, {5, 6}});
  CHECK(micro_batches(lengths, 1) == Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}});
  CHECK(micro_batches(lengths, 1000) == Ranges{{0, 6}});
  CHECK(micro_batches({}, 60).empty());
}

TEST_CASE("equal runs end at the boundaries nearest to equal shares of the tokens") {
  using Ranges = std::vector<IndexRange>;
  CHECK(equal_runs(std::vector<int64_t>{10, 20, 30, 5, 100, 1}, 1) == Ranges{{0, 6}});
  // Of 166 tokens a half is 83: 65 before sequence 4 are nearer than 165 behind it.
  CHECK(equal_runs(std::vector<int64_t>{10, 20, 30, 5, 100, 1}, 2) == Ranges{{0, 4}, {4, 6}});
  // A tie goes to the lower one.
  CHECK(equal_runs(std::vector<int64_t>{2, 2, 2}, 2) == Ranges{{0, 1}, {1, 3}});
  // Each run has a sequence, and leaves one for each later run.
  CHECK(equal_runs(std::vector<int64_t>{90, 1, 1, 1}, 3) == Ranges{{0, 1}, {1, 2}, {2, 4}});
  CHECK(equal_runs(std::vector<int64_t>{1, 1, 1, 90}, 3) == Ranges{{0, 2}, {2, 3}, {3, 4}});
  // More runs than sequences: one sequence each.
  CHECK(equal_runs(std::vector<int64_t>{7, 3}, 5) == Ranges{{0, 1}, {1, 2}});
  CHECK(equal_runs({}, 4).empty());
  CHECK(micro_batches(std::vector<int64_t>{4, 4, 4}, MicroBatching::into(3)).size() == 3);
  CHECK(micro_batches(std::vector<int64_t>{4, 4, 4}, MicroBatching::of_tokens(8)).size() == 2);
}

// All sequences of up to six lengths 1..4, against the definition in other words: the first of the
// nearest allowed boundaries.
TEST_CASE("equal runs match their definition and the forecast bound") {
  for (int64_t count = 1; count <= 6; ++count) {
    std::vector<int64_t> lengths(size_t(count), 1);
    for (bool more = true; more;) {
      std::vector<int64_t> before{0};
      for (int64_t length : lengths) before.push_back(before.back() + length);
      for (int64_t wanted : {1, 2, 3, 4, 7}) {
        const std::vector<IndexRange> runs = equal_runs(lengths, wanted);
        const int64_t r = std::min(wanted, count);
        REQUIRE(int64_t(runs.size()) == r);
        const RunBounds most = largest_run({count, 4, 1}, MicroBatching::into(wanted));
        int64_t begin = 0;
        for (int64_t k = 1; k <= r; ++k) {
          int64_t best = begin + 1;
          for (int64_t at = begin + 1; at <= count - (r - k); ++at) {
            const auto far = [&](int64_t end) {
              return std::abs(double(before[size_t(end)]) -
                              double(before.back()) * double(k) / double(r));
            };
            if (far(at) < far(best) - 1e-9) best = at;
          }
          REQUIRE(runs[size_t(k - 1)] == IndexRange{begin, best});
          const int64_t tokens = before[size_t(best)] - before[size_t(begin)];
          REQUIRE(tokens <= most.tokens);
          REQUIRE(best - begin <= most.sequences);
          REQUIRE(tokens * r <=
                  before.back() + r * *std::max_element(lengths.begin(), lengths.end()));
          begin = best;
        }
        REQUIRE(begin == count);
      }
      more = false;
      for (int64_t& length : lengths) {
        if (length++ < 4) {
          more = true;
          break;
        }
        length = 1;
      }
    }
  }
  // Smaller batches than planned for, with longer runs.
  CHECK(largest_run({8, 10, 5}, MicroBatching::into(4)).tokens == 30);
  CHECK(largest_run({8, 10, 5}, MicroBatching::into(4)).sequences == 5);
  CHECK(largest_run({3, 10, 5}, MicroBatching::into(4)).tokens == 10);
  CHECK(largest_run({8, 10, 5}, MicroBatching::into(1)).tokens == 80);
  CHECK(largest_run({8, 10, 5}, MicroBatching::of_tokens(32)).tokens == 32);
  CHECK(largest_run({8, 10, 5}, MicroBatching::of_tokens(32)).sequences == 6);
}
