// Kept heads: a regression head with its scale folded in and undone, rows of labels that stay.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "../shared.h"
#include "../small_encoder.h"
#include "core/error.h"
#include "core/files/files.h"
#include "engine/engine.h"
#include "engine/pretrained.h"
#include "engine/scaled_head.h"
#include "weights/weights.h"

using namespace finetune;
using test::one_layer_config;

TEST_CASE("the exported head gives numbers, all else is as it was") {
  const ParameterTable table(one_layer_config(), Head{HeadKind::sequence, 1});
  std::vector<float> weights(size_t(table.size()), 0.75f);
  ArenaTensors tensors(table, weights.data());
  ScaledHeadTensors scaled(tensors, {100, 8, false});
  CHECK(scaled.has(Arena::weights));
  CHECK(!scaled.has(Arena::m));
  int64_t head = 0;
  for (size_t i = 0; i < table.parameters().size(); ++i) {
    const Parameter& parameter = table.parameters()[i];
    const TensorPiece piece{Arena::weights, int64_t(i), {0, parameter.size()}};
    const float* values = scaled.contents(piece);
    const bool weight = parameter.name == "classifier.weight";
    const bool bias = parameter.name == "classifier.bias";
    head += weight || bias;
    for (int64_t k = 0; k < parameter.size(); ++k) {
      CHECK(values[k] == (weight ? 6.0f : bias ? 106.0f : 0.75f));
    }
  }
  CHECK(head == 2);
  CHECK(weights == std::vector<float>(size_t(table.size()), 0.75f));
}

TEST_CASE("a trained head that gives numbers gives learnt ones when it is unscaled") {
  const ParameterTable table(one_layer_config(), Head{HeadKind::sequence, 1});
  const std::vector<float> own(size_t(table.size()), 0.75f);
  std::vector<float> weights = own;
  unscale_head(table, {100, 8, false}, weights.data());  // a new head: nothing to do
  CHECK(weights == own);
  unscale_head(table, {100, 8, true}, weights.data());
  CHECK(table.view(weights.data(), "classifier.bias").as<float>()[0] == (0.75f - 100) / 8);
  CHECK(table.view(weights.data(), "classifier.weight").as<float>()[7] == 0.75f / 8);
  int64_t changed = 0;
  for (size_t i = 0; i < own.size(); ++i) changed += weights[i] != own[i];
  CHECK(changed == 9);
  // There and back.
  ArenaTensors tensors(table, weights.data());
  ScaledHeadTensors scaled(tensors, {100, 8, false});
  for (size_t i = 0; i < table.parameters().size(); ++i) {
    const Parameter& parameter = table.parameters()[i];
    const float* values = scaled.contents({Arena::weights, int64_t(i), {0, parameter.size()}});
    for (int64_t k = 0; k < parameter.size(); ++k) CHECK(values[k] == 0.75f);
  }
}

namespace {

std::vector<float> loaded(int64_t outputs, HeadPolicy policy, std::span<const int32_t> head_rows) {
  const fs::path model = test::shared_path("golden/tiny-bert-classification");
  const EncoderConfig config = open_model_config(model.string(), true).config;
  const auto source = open_weights(model, config.architecture->names);
  const ParameterTable table(config, {HeadKind::sequence, outputs});
  std::vector<float> arena(size_t(table.size()));
  load_pretrained(table, table, *source, config.initializer_range, 1, policy, arena.data(),
                  head_rows);
  std::vector<float> head;
  for (const char* name : {"classifier.weight", "classifier.bias"}) {
    const float* values = arena.data() + table.find(name)->offset;
    head.insert(head.end(), values, values + table.find(name)->size());
  }
  return head;
}

}  // namespace

TEST_CASE("a head whose labels changed keeps the rows of those that stay") {
  if (!test::have_shared("golden/tiny-bert-classification")) return;
  const std::vector<int32_t> rows{5, -1, 0, 23}, beyond{24, 0, 1, 2};
  const auto now = loaded(4, HeadPolicy::keep_or_new, rows);
  const auto own = loaded(24, HeadPolicy::keep_or_new, {});
  const auto renewed = loaded(4, HeadPolicy::renew, {});
  const size_t cols = now.size() / 4 - 1;
  for (size_t row = 0; row < 4; ++row) {
    const bool is_new = rows[row] < 0;
    const auto& from = is_new ? renewed : own;
    const size_t place = is_new ? row : size_t(rows[row]), outputs = is_new ? 4 : 24;
    CAPTURE(row);
    CHECK(std::equal(&now[row * cols], &now[row * cols] + cols, &from[place * cols]));
    CHECK(now[4 * cols + row] == from[outputs * cols + place]);
  }
  CHECK_THROWS_WITH_AS(loaded(4, HeadPolicy::keep_or_new, beyond),
                       doctest::Contains("--reinit-head"), Error);
}
