// Parameter tables of parts of a model: together they form the whole, in the same regions.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "../model_parts.h"
#include "fixture.h"

namespace finetune::test {
namespace {

EncoderConfig config_of_parts(int64_t layers) {
  EncoderConfig config = small_config(layers);
  config.hidden_size = 24;
  config.num_attention_heads = 4;
  config.intermediate_size = 36;
  return config;
}

// How often each element of each whole tensor occurs.
using Cover = std::map<std::string, std::vector<int>>;

void add_to(Cover& cover, const ParameterTable& table, bool replicated) {
  for (const Parameter& p : table.parameters()) {
    if (p.shard == kReplicated && !replicated) continue;
    int64_t size = 1;
    for (int64_t d : p.whole_shape) size *= d;
    std::vector<int>& counts = cover[p.name];
    counts.resize(size_t(size));
    for (int64_t row = 0; row < p.slice.rows; ++row) {
      for (int64_t col = 0; col < p.slice.cols; ++col) {
        ++counts.at(size_t((p.slice.row + row) * p.whole_shape.back() + p.slice.col + col));
      }
    }
  }
}

}  // namespace

TEST_CASE("parts together have every element of the whole table once") {
  for (Head head : kHeads) {
    const EncoderConfig config = config_of_parts(5);
    Cover once;
    add_to(once, ParameterTable(config, head), true);
    for (const auto& [name, counts] : once) {
      CHECK(std::set<int>(counts.begin(), counts.end()) == std::set<int>{1});
    }
    for (PartLayout layout : kPartLayouts) {
      CAPTURE(layout.stages);
      CAPTURE(layout.chunks);
      CAPTURE(layout.tensor_ranks);
      CAPTURE(layout.tensor_shards);
      Cover cover;
      int64_t replicated = -1;
      for (const ModelPart& part : parts_of(config, layout)) {
        const ParameterTable table(config, head, part);
        add_to(cover, table, part.shards.begin == 0);
        // Replicated parameters are equal on every tensor rank.
        int64_t count = 0;
        for (const Parameter& p : table.parameters()) count += p.shard < 0 ? p.size() : 0;
        if (part.shards.begin == 0) replicated = count;
        CHECK(count == replicated);
      }
      CHECK(cover == once);
    }
  }
}

TEST_CASE("offsets of a part: in its regions, aligned, without overlap") {
  for (PartLayout layout : kPartLayouts) {
    const EncoderConfig config = config_of_parts(5);
    for (const ModelPart& part : parts_of(config, layout)) {
      const ParameterTable table(config, kHeads[0], part);
      int64_t end = 0;
      size_t region = 0;
      for (const Parameter& p : table.parameters()) {
        INFO(p.name);
        CHECK(p.offset >= end);
        CHECK(p.size() > 0);
        if (p.role != Role::key && p.role != Role::value) CHECK(p.offset % 16 == 0);
        end = p.offset + p.size();
        while (!table.regions()[region].elements.contains(p.offset)) ++region;
        const Region& own = table.regions()[region];
        CHECK(end <= own.elements.end);
        CHECK(own.layer == p.layer);
        CHECK(own.shard == p.shard);
        CHECK((p.shard == kReplicated || part.shards.contains(p.shard)));
      }
      CHECK(table.size() >= end);
    }
  }
}

TEST_CASE("a part's regions are the whole table's with the same tensor shards") {
  for (PartLayout layout : kPartLayouts) {
    CAPTURE(layout.stages);
    CAPTURE(layout.tensor_shards);
    const EncoderConfig config = config_of_parts(5);
    const ParameterTable whole(config, kHeads[0], ModelPart::whole(config, layout.tensor_shards));
    std::map<int64_t, Region> by_place;
    int64_t end = 0;
    for (const Region& region : whole.regions()) {
      CHECK(region.whole == region.elements.begin);
      CHECK(region.elements.begin == end);
      CHECK(end % kNormBlock == 0);
      end = region.elements.end;
      by_place[region.whole] = region;
    }
    CHECK(end == whole.size());
    for (const ModelPart& part : parts_of(config, layout)) {
      const ParameterTable table(config, kHeads[0], part);
      int64_t begin = 0, last = -1;
      for (const Region& region : table.regions()) {
        CHECK(region.elements.begin == begin);
        CHECK(begin % kNormBlock == 0);
        begin = region.elements.end;
        REQUIRE(by_place.contains(region.whole));
        const Region& same = by_place[region.whole];
        CHECK(region.elements.size() == same.elements.size());
        CHECK(region.layer == same.layer);
        CHECK(region.shard == same.shard);
        CHECK(region.whole > last);  // in the whole table's order
        last = region.whole;
      }
      CHECK(begin == table.size());
    }
  }
}

TEST_CASE("slices of tensor shards") {
  const EncoderConfig config = config_of_parts(2);
  ModelPart part = ModelPart::whole(config, 4);
  part.shards = {1, 3};
  const ParameterTable table(config, kHeads[1], part);
  auto find = [&](Role role, int shard, ParameterPart of = ParameterPart::weight) {
    return table.find(role, of, 1, shard);
  };
  CHECK(find(Role::query, 0) == nullptr);
  CHECK(find(Role::query, 3) == nullptr);
  const Parameter& key = *find(Role::key, 1);
  CHECK(key.shape == std::vector<int64_t>{6, 24});
  CHECK(key.whole_shape == std::vector<int64_t>{24, 24});
  CHECK(key.slice == TensorSlice{6, 6, 0, 24});
  CHECK(key.offset == find(Role::query, 1)->offset + 6 * 24);
  CHECK(find(Role::value, 2, ParameterPart::bias)->slice == TensorSlice{0, 1, 12, 6});
  CHECK(find(Role::inner, 2)->slice == TensorSlice{18, 9, 0, 24});
  CHECK(find(Role::attention_output, 2)->slice == TensorSlice{0, 24, 12, 6});
  CHECK(find(Role::output, 1)->shape == std::vector<int64_t>{24, 9});
  // Biases added once belong to the first shard, norms to all.
  CHECK(find(Role::output, 1, ParameterPart::bias) == nullptr);
  CHECK(find(Role::output_norm, 1)->shard == kReplicated);
  CHECK(table.find("bert.encoder.layer.1.output.dense.weight") == find(Role::output, 1));
  const ParameterTable first(config, kHeads[1], ModelPart::whole(config, 4));
  CHECK(first.find(Role::output, ParameterPart::bias)->whole());
}

TEST_CASE("initial values of parts equal the whole table's") {
  for (PartLayout layout : kPartLayouts) {
    EncoderConfig config = config_of_parts(5);
    config.hidden_size = 28;  // slices begin inside blocks of random numbers
    config.intermediate_size = 44;
    config.pad_token_id = 3;
    const ParameterTable whole(config, kHeads[0]);
    std::vector<float> expected(size_t(whole.size()), 0.0f);
    initialize(whole, 0.02, 7, expected.data());
    for (const ModelPart& part : parts_of(config, layout)) {
      const ParameterTable table(config, kHeads[0], part);
      std::vector<float> arena(size_t(table.size()), 0.0f);
      initialize(table, 0.02, 7, arena.data());
      int64_t different = 0;
      for (const Parameter& p : table.parameters()) {
        const Parameter& from = *whole.find(p.name);
        for (int64_t i = 0; i < p.size(); ++i) {
          const int64_t element = (p.slice.row + i / p.slice.cols) * p.whole_shape.back() +
                                  p.slice.col + i % p.slice.cols;
          different += arena[size_t(p.offset + i)] != expected[size_t(from.offset + element)];
        }
      }
      CHECK(different == 0);
    }
  }
}

}  // namespace finetune::test
