// A regression head with its scale folded in, and undone.
#include <doctest/doctest.h>

#include <vector>

#include "../one_layer.h"
#include "engine/scaled_head.h"

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
