#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "core/philox.h"
#include "train/tree_sum.h"

using namespace finetune;

namespace {

constexpr int64_t kElements = 1000;

// Gradient of shard k: values of very different size, so that every order of additions differs.
float leaf_value(int64_t shard, int64_t element) {
  PhiloxBlock bits = philox({7, 11}, {uint32_t(shard), uint32_t(element), 0, 0});
  double exponent = 12 * (unit_interval(bits[1]) - 0.5);
  return float((unit_interval(bits[0]) - 0.5) * std::pow(10.0, exponent));
}

std::vector<float> sum_of(Backend& backend, int64_t first, int64_t count) {
  GradientTree tree(backend, kElements, count);
  for (int64_t k = first; k < first + count; ++k) {
    float* leaf = tree.leaf();
    for (int64_t i = 0; i < kElements; ++i) {
      REQUIRE(leaf[i] == 0.0f);
      leaf[i] = leaf_value(k, i);
    }
    tree.push();
  }
  std::vector<float> sum(kElements);
  backend.download(sum.data(), tree.root(), kElements * sizeof(float));
  return sum;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The processes' arrays in a binary tree over ranks, as Communicator::all_reduce adds them.
std::vector<float> across_processes(std::vector<std::vector<float>> roots) {
  for (size_t distance = 1; distance < roots.size(); distance *= 2) {
    for (size_t p = 0; p + distance < roots.size(); p += 2 * distance) {
      for (size_t i = 0; i < roots[p].size(); ++i) roots[p][i] += roots[p + distance][i];
    }
  }
  return roots[0];
}

}  // namespace

TEST_CASE("eight shards give the same bits on 1, 2, 4 and 8 processes") {
  auto backend = make_reference_backend();
  std::vector<float> one = sum_of(*backend, 0, 8);
  for (int64_t processes : {2, 4, 8}) {
    CAPTURE(processes);
    std::vector<std::vector<float>> roots;
    for (int64_t p = 0; p < processes; ++p) {
      roots.push_back(sum_of(*backend, p * 8 / processes, 8 / processes));
    }
    CHECK(same_bits(across_processes(roots), one));
  }
  // The data can tell one order from another: a plain running sum has other bits.
  std::vector<float> running(kElements);
  for (int64_t k = 0; k < 8; ++k) {
    for (int64_t i = 0; i < kElements; ++i) running[size_t(i)] += leaf_value(k, i);
  }
  CHECK(!same_bits(running, one));
}

TEST_CASE("any number of shards is summed, in the documented order") {
  auto backend = make_reference_backend();
  for (int64_t shards = 1; shards <= 19; ++shards) {
    CAPTURE(shards);
    // The tree by its definition: full subtrees of the binary digits of K, left to right, folded
    // from the smallest up.
    std::function<float(int64_t, int64_t, int64_t)> full = [&](int64_t first, int64_t n,
                                                               int64_t i) -> float {
      if (n == 1) return leaf_value(first, i);
      return full(first, n / 2, i) + full(first + n / 2, n / 2, i);
    };
    std::function<float(int64_t, int64_t, int64_t)> any = [&](int64_t first, int64_t n,
                                                              int64_t i) -> float {
      int64_t largest = 1;
      while (largest * 2 <= n) largest *= 2;
      float head = full(first, largest, i);
      return largest == n ? head : head + any(first + largest, n - largest, i);
    };
    std::vector<float> expected(kElements);
    double error = 0, scale = 0;
    std::vector<float> sum = sum_of(*backend, 0, shards);
    for (int64_t i = 0; i < kElements; ++i) {
      expected[size_t(i)] = any(0, shards, i);
      double exact = 0, magnitude = 0;
      for (int64_t k = 0; k < shards; ++k) {
        exact += double(leaf_value(k, i));
        magnitude += std::abs(double(leaf_value(k, i)));
      }
      error = std::max(error, std::abs(double(sum[size_t(i)]) - exact) / magnitude);
      scale = std::max(scale, magnitude);
    }
    CHECK(same_bits(sum, expected));
    CHECK(error < 5 * 0x1p-24);  // depth of the tree times half a unit in the last place
    CHECK(scale > 0);
  }
}

TEST_CASE("arenas: log2(K) + 1, zeroed before each use") {
  CHECK(GradientTree::arenas_needed(1) == 1);
  CHECK(GradientTree::arenas_needed(2) == 2);
  CHECK(GradientTree::arenas_needed(7) == 3);
  CHECK(GradientTree::arenas_needed(8) == 4);
  auto backend = make_reference_backend();
  GradientTree tree(*backend, 4, 3);
  for (int step = 0; step < 3; ++step) {
    for (int k = 0; k < 3; ++k) {
      float* leaf = tree.leaf();
      CHECK(leaf == tree.leaf());
      for (int i = 0; i < 4; ++i) {
        CHECK(leaf[i] == 0.0f);
        leaf[i] = float(k + 1);
      }
      tree.push();
    }
    float* root = tree.root();
    CHECK(root[3] == 6.0f);
    bool zeroed = step == 1;
    if (zeroed) std::memset(root, 0, 4 * sizeof(float));
    tree.clear(zeroed);
  }
}

TEST_CASE("numbers are summed in the same tree") {
  CHECK(tree_sum({}) == 0.0);
  std::vector<double> terms;
  for (int64_t count = 1; count <= 33; ++count) {
    CAPTURE(count);
    terms.push_back(double(leaf_value(count, 3)));
    double exact = 0;
    for (double term : terms) exact += term;
    CHECK(tree_sum(terms) == doctest::Approx(exact).epsilon(1e-12));
  }
  std::span<const double> all = std::span(terms).first(32);
  CHECK(tree_sum(all) == tree_sum(all.first(16)) + tree_sum(all.last(16)));
  CHECK(tree_sum(std::span(terms)) == tree_sum(all) + terms[32]);
  // An order that is not the tree's is told apart: 1e16 swallows a lone 1.
  CHECK(tree_sum(std::vector<double>{1e16, 1.0, 1.0, 1.0}) == 1e16 + 2.0);
}

TEST_CASE("the gradient norm over several blocks") {
  auto backend = make_reference_backend();
  int64_t count = 2 * kNormBlock + 17;
  std::vector<float> gradients(size_t(count), 0.0f);
  gradients[0] = 3.0f;
  gradients[size_t(kNormBlock)] = 4.0f;
  gradients[size_t(count - 1)] = 12.0f;
  std::vector<double> work;
  CHECK(gradient_norm(*backend, vector(gradients.data(), count), {}, work) == 13.0);
  CHECK(work == std::vector<double>{9.0, 16.0, 144.0});
}
