// The order of additions, written out: each sum is the text of its expression.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/numeric/philox.h"
#include "core/numeric/tree_sum.h"
#include "distributed/reduce/local_reduce.h"

using namespace finetune;

namespace {

// The tree of leaves [first, first + n), n a power of two.
std::string full_tree(int64_t first, int64_t n) {
  if (n == 1) return std::to_string(first);
  return "(" + full_tree(first, n / 2) + "+" + full_tree(first + n / 2, n / 2) + ")";
}

// By its definition: full trees of the binary digits of n, folded from the smallest up.
std::string tree(int64_t first, int64_t n) {
  int64_t largest = 1;
  while (largest * 2 <= n) largest *= 2;
  const std::string head = full_tree(first, largest);
  return largest == n ? head : "(" + head + "+" + tree(first + largest, n - largest) + ")";
}

void add(std::vector<std::string>& terms, const std::vector<TreeAddition>& additions) {
  for (const TreeAddition& a : additions) {
    std::string& to = terms[size_t(a.to)];
    std::string& from = terms[size_t(a.from)];
    to = "(" + to + "+" + from + ")";
    from.clear();
  }
}

struct Part {
  std::vector<Subtree> subtrees;
  std::vector<std::string> sums;
};

Part of_process(IndexRange range) {
  TreeCounter counter(range);
  std::vector<std::string> places(size_t(TreeCounter::slots_needed(range)));
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) {
    const size_t place = size_t(counter.leaf());
    REQUIRE(place < places.size());
    REQUIRE(places[place].empty());
    places[place] = std::to_string(leaf);
    add(places, counter.push());
  }
  Part part{subtrees_of(range), {}};
  for (int place : counter.slots()) part.sums.push_back(places[size_t(place)]);
  REQUIRE(part.subtrees.size() == part.sums.size());
  return part;
}

Part combined(const std::vector<Part>& parts, bool all) {
  Part whole;
  for (const Part& part : parts) {
    whole.subtrees.insert(whole.subtrees.end(), part.subtrees.begin(), part.subtrees.end());
    whole.sums.insert(whole.sums.end(), part.sums.begin(), part.sums.end());
  }
  const TreeCombination combination = combine_subtrees(whole.subtrees, all);
  add(whole.sums, combination.additions);
  Part out{combination.subtrees, {}};
  for (int left : combination.left) out.sums.push_back(whole.sums[size_t(left)]);
  return out;
}

// Processes with these shards; `hosts[i]` is the host of process i.
std::string sum_of(const std::vector<IndexRange>& ranges, const std::vector<int>& hosts) {
  std::vector<Part> of_hosts;
  for (size_t p = 0; p < ranges.size();) {
    std::vector<Part> processes;
    const int host = hosts[p];
    for (; p < ranges.size() && hosts[p] == host; ++p) processes.push_back(of_process(ranges[p]));
    of_hosts.push_back(combined(processes, false));
  }
  const Part root = combined(of_hosts, true);
  REQUIRE(root.sums.size() == 1);
  return root.sums[0];
}

float value(uint32_t i) {
  const PhiloxBlock bits = philox({7, 11}, {i, 3, 0, 0});
  return float((unit_interval(bits[0]) - 0.5) *
               std::pow(10.0, 12 * (unit_interval(bits[1]) - 0.5)));
}

}  // namespace

TEST_CASE("the tree of one process is the documented one") {
  CHECK(tree(0, 7) == "(((0+1)+(2+3))+((4+5)+6))");
  for (int64_t shards = 1; shards <= 40; ++shards) {
    CAPTURE(shards);
    CHECK(sum_of({{0, shards}}, {0}) == tree(0, shards));
  }
}

TEST_CASE("every cut into processes and hosts gives the same tree") {
  for (int64_t shards = 1; shards <= 17; ++shards) {
    CAPTURE(shards);
    const std::string expected = tree(0, shards);
    const uint32_t most = shards <= 12 ? 1 : 37;  // of many shards, a sample
    for (uint32_t cuts = 0; cuts < uint32_t(1) << (shards - 1); cuts += most) {
      CAPTURE(cuts);
      std::vector<IndexRange> ranges;
      int64_t begin = 0;
      for (int64_t end = 1; end <= shards; ++end) {
        if (end < shards && !(cuts >> (end - 1) & 1)) continue;
        ranges.push_back({begin, end});
        begin = end;
      }
      const size_t processes = ranges.size();
      std::vector<int> one(processes, 0), each(processes), some(processes);
      for (size_t p = 1; p < processes; ++p) {
        each[p] = int(p);
        some[p] = some[p - 1] + int(philox({3, 3}, {cuts, uint32_t(p), 0, 0})[0] & 1);
      }
      for (const auto& hosts : {one, each, some}) {
        if (sum_of(ranges, hosts) != expected) FAIL_CHECK(sum_of(ranges, hosts));
      }
    }
  }
}

TEST_CASE("more processes and hosts than shards: those without add nothing") {
  for (int64_t shards = 1; shards <= 5; ++shards) {
    for (int processes : {6, 7, 11}) {
      for (int hosts : {1, 2, 3, 6}) {
        std::vector<IndexRange> ranges;
        std::vector<int> host_of;
        for (int p = 0; p < processes; ++p) {
          ranges.push_back(part(shards, processes, p));
          host_of.push_back(p * hosts / processes);
        }
        CHECK(sum_of(ranges, host_of) == tree(0, shards));
      }
    }
  }
}

TEST_CASE("a counter needs log2(K) + 1 places, in every round the same") {
  CHECK(TreeCounter::slots_needed({0, 0}) == 0);
  CHECK(TreeCounter::slots_needed({0, 1}) == 1);
  CHECK(TreeCounter::slots_needed({0, 2}) == 2);
  CHECK(TreeCounter::slots_needed({0, 7}) == 3);
  CHECK(TreeCounter::slots_needed({0, 8}) == 4);
  CHECK(TreeCounter::slots_needed({3, 5}) == 2);  // not siblings in the tree
  for (IndexRange range : {IndexRange{0, 7}, IndexRange{3, 10}, IndexRange{5, 6}}) {
    TreeCounter counter(range);
    std::vector<int> first, firsts_places;
    for (int round = 0; round < 3; ++round) {
      std::vector<int> leaves;
      for (int64_t k = range.begin; k < range.end; ++k) {
        leaves.push_back(counter.leaf());
        CHECK(counter.leaf() == leaves.back());
        counter.push();
      }
      if (round == 0) first = leaves, firsts_places = counter.slots();
      CHECK(leaves == first);
      CHECK(counter.slots() == firsts_places);
      counter.clear();
    }
  }
}

TEST_CASE("subtrees that are not neighbours cannot be combined") {
  CHECK_THROWS(combine_subtrees(std::vector<Subtree>{{0, 1}, {3, 0}}, true));
}

TEST_CASE("numbers are summed in the same tree") {
  CHECK(tree_sum({}) == 0.0);
  std::vector<double> terms;
  for (uint32_t count = 1; count <= 33; ++count) {
    CAPTURE(count);
    terms.push_back(double(value(count)));
    std::function<double(size_t, size_t)> any = [&](size_t first, size_t n) -> double {
      if (n == 1) return terms[first];
      size_t largest = 1;
      while (largest * 2 <= n) largest *= 2;
      if (largest == n) largest = n / 2;
      return any(first, largest) + any(first + largest, n - largest);
    };
    CHECK(tree_sum(terms) == any(0, terms.size()));
  }
  // An order other than the tree's is detected: 1e16 absorbs a single 1.
  CHECK(tree_sum(std::vector<double>{1e16, 1.0, 1.0, 1.0}) == 1e16 + 2.0);
}
