// Layers cut into stages: compared with every possible cut, and as part of a model.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "../contains.h"
#include "core/error.h"
#include "distributed/layout/stage_split.h"
#include "error_line.h"

using namespace finetune;
using test::contains;

namespace {

double slowest(const LayerCosts& costs, const std::vector<IndexRange>& runs) {
  double most = 0;
  for (IndexRange run : runs) most = std::max(most, costs.total(run));
  return most;
}

// The least cost of the slowest block over all cuts.
double brute_force(const LayerCosts& costs, int64_t blocks) {
  const int64_t layers = int64_t(costs.layers.size());
  double best = std::numeric_limits<double>::infinity();
  std::vector<IndexRange> runs;
  std::function<void(int64_t)> cut = [&](int64_t begin) {
    if (int64_t(runs.size()) + 1 == blocks) {
      runs.push_back({begin, layers});
      best = std::min(best, slowest(costs, runs));
      runs.pop_back();
      return;
    }
    for (int64_t end = begin + 1; end < layers; ++end) {
      runs.push_back({begin, end});
      cut(end);
      runs.pop_back();
    }
  };
  cut(0);
  return best;
}

std::vector<int64_t> sizes_of(const StageSplit& split) {
  std::vector<int64_t> sizes;
  for (int s = 0; s < split.stages(); ++s) sizes.push_back(split.layers(s));
  return sizes;
}

LayerCosts equal_layers(int64_t layers, double embeddings = 0, double head = 0) {
  return {embeddings, std::vector<double>(size_t(layers), 1.0), head};
}

std::string refusal(const char* words, int stages, int chunks, int64_t layers) {
  return test::error_line(ExitCode::usage,
                          [&] { split_stages(words, stages, chunks, equal_layers(layers)); });
}

using Sizes = std::vector<int64_t>;

}  // namespace

TEST_CASE("the slowest stage is as fast as in the best of all cuts") {
  uint32_t state = 7;
  auto random = [&] { return double((state = state * 1664525u + 1013904223u) >> 16 & 255) / 64; };
  for (int64_t layers = 1; layers <= 11; ++layers) {
    for (int64_t blocks = 1; blocks <= layers; ++blocks) {
      for (int variant = 0; variant < 6; ++variant) {
        LayerCosts costs = equal_layers(layers, variant * 0.4, variant == 5 ? 2.5 : 0.1);
        if (variant >= 3) {
          for (double& cost : costs.layers) cost = 0.25 + random();
        }
        const std::vector<IndexRange> runs = split_evenly(costs, blocks);
        REQUIRE(int64_t(runs.size()) == blocks);
        int64_t next = 0;
        for (IndexRange run : runs) {
          CHECK(run.begin == next);
          CHECK(run.size() >= 1);
          next = run.end;
        }
        CHECK(next == layers);
        CHECK(slowest(costs, runs) == doctest::Approx(brute_force(costs, blocks)).epsilon(1e-8));
      }
    }
  }
}

TEST_CASE("equal layers go evenly, later stages get more of them") {
  CHECK(sizes_of(split_stages("auto", 2, 1, equal_layers(12))) == Sizes{6, 6});
  CHECK(sizes_of(split_stages("auto", 5, 1, equal_layers(12))) == Sizes{2, 2, 2, 3, 3});
  CHECK(sizes_of(split_stages("auto", 1, 1, equal_layers(3))) == Sizes{3});
  CHECK(sizes_of(split_stages("auto", 3, 1, equal_layers(3))) == Sizes{1, 1, 1});
  // Embeddings as slow as two layers, a head as slow as one.
  CHECK(sizes_of(split_stages("auto", 3, 1, equal_layers(9, 2, 1))) == Sizes{2, 4, 3});
  // With as many layers as any model has, it takes no time.
  CHECK(split_stages("auto", 64, 1, equal_layers(4096, 3, 1)).layers(63) == 64);
}

TEST_CASE("auto cuts between runs of layers that share weights") {
  LayerCosts costs = equal_layers(9);
  costs.runs = {1, 5, 3};
  CHECK(sizes_of(split_stages("auto", 2, 1, costs)) == Sizes{6, 3});
  CHECK(sizes_of(split_stages("auto", 3, 1, costs)) == Sizes{1, 5, 3});
  CHECK(sizes_of(split_stages("auto", 4, 1, costs)) == Sizes{2, 2, 2, 3});  // too few: as without
  EncoderConfig config = named_shape("base");
  config.layer.groups = 3;  // of 12 layers
  config.layer.inner = 1;
  CHECK(layer_costs(config, {HeadKind::token, 2}, 128).runs == Sizes{4, 4, 4});
  config.num_hidden_layers = 6;  // groups of one layer of two, which need no common stage
  config.layer.inner = 2;
  CHECK(layer_costs(config, {HeadKind::token, 2}, 128).runs == Sizes{1, 1, 1, 1, 1, 1});
}

TEST_CASE("the last layer of classification is short: the last stage gets one more") {
  EncoderConfig config = named_shape("base");
  const LayerCosts sequence = layer_costs(config, {HeadKind::sequence, 2}, 128);
  const LayerCosts token = layer_costs(config, {HeadKind::token, 2}, 128);
  // 2 (4 H^2 + 2 H I) + 4 H length; keys and values alone are 4 H^2.
  CHECK(token.layers.front() == 2.0 * 12 * 768 * 768 + 4.0 * 768 * 128);
  CHECK(sequence.layers.back() > 4.0 * 768 * 768);
  CHECK(sequence.layers.back() < 0.2 * token.layers.back());
  CHECK(token.embeddings < 0.01 * token.layers.front());
  CHECK(sizes_of(split_stages("auto", 4, 1, sequence)) == Sizes{3, 3, 3, 3});
  config.num_hidden_layers = 13;
  CHECK(sizes_of(split_stages("auto", 4, 1, layer_costs(config, {HeadKind::sequence, 2}, 128))) ==
        Sizes{3, 3, 3, 4});
}

TEST_CASE("stages that are given, and chunks") {
  const StageSplit given = split_stages("7,5", 2, 1, equal_layers(12));
  CHECK(given.chunks == std::vector<std::vector<IndexRange>>{{{0, 7}}, {{7, 12}}});
  const StageSplit chunked = split_stages("auto", 2, 3, equal_layers(12));
  CHECK(chunked.chunks == std::vector<std::vector<IndexRange>>{{{0, 2}, {4, 6}, {8, 10}},
                                                               {{2, 4}, {6, 8}, {10, 12}}});
  const StageSplit both = split_stages("3, 4", 2, 2, equal_layers(7));
  CHECK(both.chunks == std::vector<std::vector<IndexRange>>{{{0, 2}, {4, 5}}, {{2, 4}, {5, 7}}});
  CHECK(both.layers() == 7);
  CHECK(both.chunks_of_a_stage() == 2);
}

TEST_CASE("parts of all ranks are the model, each layer and shard once") {
  const EncoderConfig config = named_shape("base");
  for (int chunks : {1, 2, 3}) {
    const StageSplit split =
        split_stages("auto", 3, chunks, layer_costs(config, {HeadKind::token, 2}, 128));
    std::vector<std::vector<int>> held(12, std::vector<int>(4, 0));
    int embeddings = 0, heads = 0;
    for (int rank = 0; rank < 6; ++rank) {
      const ModelPart part = part_of(split, Layout(6, 3, 2), 4, rank);
      embeddings += part.embeddings;
      heads += part.head;
      CHECK(part.embeddings == (rank < 2));
      CHECK(part.head == (rank >= 4));
      CHECK(part.embeddings == part.holds_layer(0));
      CHECK(part.head == part.holds_layer(11));
      CHECK(!part.is_whole(config));
      for (int64_t layer = 0; layer < 12; ++layer) {
        for (int64_t v = part.shards.begin; part.holds_layer(layer) && v < part.shards.end; ++v) {
          ++held[size_t(layer)][size_t(v)];
        }
      }
    }
    CHECK(embeddings == 2);
    CHECK(heads == 2);
    CHECK(held == std::vector<std::vector<int>>(12, std::vector<int>(4, 1)));
  }
  const StageSplit one = split_stages("auto", 1, 1, equal_layers(12));
  CHECK(part_of(one, 0, 1, 1, 0).is_whole(config));
}

TEST_CASE("impossible stages are one line with their numbers") {
  CHECK(contains(refusal("auto", 13, 1, 12), "--pp 13 needs 13 layers; the model has 12"));
  CHECK(contains(refusal("auto", 4, 4, 12),
                 "--pp 4 times --chunks 4 needs 16 layers; the model has 12"));
  CHECK(contains(refusal("7,4", 2, 1, 12), "'7,4' has 11 layers; the model has 12"));
  CHECK(contains(refusal("6,6", 3, 1, 12), "names 2 stages; --pp is 3"));
  CHECK(contains(refusal("11,1", 2, 2, 12), "a stage of 1 layers has no 2 chunks"));
  for (const char* words : {"", "0,12", "6,x", "6,6,", "-1,13", "13,-1", "6;6"}) {
    CHECK(contains(refusal(words, 2, 1, 12), "--stages"));
  }
}
