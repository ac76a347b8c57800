// Packed micro-batches: order, shapes and fillers.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "core/numeric/philox.h"
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

  pack(set, std::vector<uint32_t>{2}, {}, batch);  // reuses the memory of a larger batch
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

TEST_CASE("micro-batches of like size get one shape, and are themselves still") {
  for (int64_t sequences : {1, 3, 4, 32, 200, 1000}) {
    for (int64_t length : {1, 5, 13, 200}) {
      TokenizedSamples set;
      std::vector<uint32_t> indices;
      for (int64_t i = 0; i < sequences; ++i) {
        std::vector<int32_t> ids;
        for (int64_t k = 0; k < length; ++k)
          ids.push_back(int32_t(philox({1, 2}, {uint32_t(i), uint32_t(k), 0, 0})[0] % 900));
        add(set, ids, 3);
        indices.push_back(uint32_t(i));
      }
      PackedBatch before, batch;
      pack(set, indices, {}, before);
      pack(set, indices, {}, batch);
      fill_up(batch);
      const BatchShape shape{batch.tokens(), batch.sequences(), batch.max_length};
      CHECK(shape == filled_shape({before.tokens(), sequences, before.max_length}));
      const BatchShape most = largest_filled({before.tokens(), sequences, before.max_length});
      CHECK((most.tokens >= shape.tokens && most.sequences >= shape.sequences));
      CHECK(most.max_length >= shape.max_length);
      CHECK(batch.fillers == shape.sequences - sequences);
      CHECK(batch.fillers > 0);
      CHECK(shape.tokens <= std::max(before.tokens() + 20, before.tokens() * 9 / 8));
      // Earlier contents stay, and each filler has a token of the batch.
      CHECK(std::equal(before.ids.begin(), before.ids.end(), batch.ids.begin()));
      CHECK(std::equal(before.offsets.begin(), before.offsets.end(), batch.offsets.begin()));
      CHECK(batch.offsets.size() == size_t(shape.sequences + 1));
      CHECK(batch.offsets.back() == shape.tokens);
      for (size_t b = 0; b < size_t(shape.sequences); ++b) {
        const int64_t tokens = batch.offsets[b + 1] - batch.offsets[b];
        CHECK((tokens >= 1 && tokens <= shape.max_length));
        CHECK(batch.indices[b] < indices.size());
      }
      CHECK(std::count(before.ids.begin(), before.ids.end(), batch.ids.back()) > 0);
      for (const auto* array : {&batch.positions, &batch.token_samples}) {
        CHECK(array->size() == size_t(shape.tokens));
      }
      CHECK(batch.types.size() == size_t(shape.tokens));
      CHECK(batch.samples.size() == size_t(shape.sequences));
      std::vector<int32_t> sorted(batch.ids.size());
      std::iota(sorted.begin(), sorted.end(), 0);
      std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
        return batch.ids[size_t(a)] < batch.ids[size_t(b)];
      });
      CHECK(batch.order == sorted);
    }
  }
  std::set<std::vector<int64_t>> shapes;  // of batches of 32 texts as they come
  for (int64_t tokens = 380; tokens <= 460; ++tokens) {
    const BatchShape shape = filled_shape({tokens, 32, 20 + tokens % 40});
    shapes.insert({shape.tokens, shape.sequences, shape.max_length});
  }
  CHECK(shapes.size() <= 2 * 6);
}

TEST_CASE("the longest sequence is rounded up to 16, 32 and multiples of 64, but not above all") {
  const int64_t lengths[][2] = {{1, 16},  {16, 16}, {17, 32},  {32, 32},
                                {33, 64}, {64, 64}, {65, 128}, {200, 256}};
  for (const auto& [longest, rounded] : lengths) {
    CHECK(filled_shape({40 * longest, 40, longest}).max_length == rounded);
  }
  CHECK(filled_shape({40, 1, 40}) == BatchShape{48, 4, 48});
}

TEST_CASE("large micro-batches are filled up as well, by little") {
  for (int64_t tokens = 2049; tokens < 40000; tokens += 37) {
    for (int64_t sequences : {6, 32, 41}) {
      const BatchShape before{tokens, sequences, tokens / sequences + 1};
      const BatchShape shape = filled_shape(before);
      CHECK(shape.tokens % 128 == 0);
      CHECK(shape.tokens - tokens <= 4 + std::max<int64_t>(128, tokens / 64));
      CHECK(shape.sequences > sequences);
      CHECK(shape.sequences <= sequences + 4);
    }
  }
  // 32 windows of questions, of 120 to 220 tokens each.
  std::set<std::vector<int64_t>> shapes;
  for (uint32_t i = 0; i < 1000; ++i) {
    BatchShape shape{0, 32, 0};
    for (uint32_t k = 0; k < 32; ++k) {
      const int64_t length = 120 + philox({3, 4}, {i, k, 0, 0})[0] % 100;
      shape.tokens += length;
      shape.max_length = std::max(shape.max_length, length);
    }
    shape = filled_shape(shape);
    shapes.insert({shape.tokens, shape.sequences, shape.max_length});
  }
  CHECK(shapes.size() <= 16);
  // Many short sequences: their number is rounded up more coarsely.
  shapes.clear();
  for (int64_t sequences = 1100; sequences < 1300; ++sequences) {
    const BatchShape shape = filled_shape({16300, sequences, 60});
    shapes.insert({shape.tokens, shape.sequences, shape.max_length});
  }
  CHECK(shapes.size() <= 8);
}

// The limits hold for every smaller micro-batch.
TEST_CASE("no micro-batch takes more than the largest that is filled up") {
  for (const BatchShape limits : {BatchShape{300, 70, 20}, {2100, 33, 384}, {16380, 1030, 60}}) {
    const BatchShape most = largest_filled(limits);
    BatchShape found;
    for (int64_t tokens = 1; tokens <= limits.tokens; ++tokens) {
      for (int64_t sequences = std::max<int64_t>(1, limits.sequences - 70);
           sequences <= std::min(tokens, limits.sequences); ++sequences) {
        const BatchShape shape = filled_shape({tokens, sequences, limits.max_length});
        found.tokens = std::max(found.tokens, shape.tokens);
        found.sequences = std::max(found.sequences, shape.sequences);
        found.max_length = std::max(found.max_length, shape.max_length);
      }
    }
    CHECK(found.tokens <= most.tokens);
    CHECK(found.sequences <= most.sequences);
    CHECK(found.max_length <= most.max_length);
  }
}
