// The head for masked words: its gradients, the tied decoder's share, recomputation, tensor shards.
#include <doctest/doctest.h>

#include <cmath>

#include "data/packing.h"
#include "fixture.h"
#include "model/tensor_sum.h"

namespace finetune::test {
namespace {

Head head_of(const EncoderConfig& config) {
  return {HeadKind::masked, config.vocab_size};
}

// Every third token is scored, from `first` on.
PackedBatch scored_batch(const EncoderConfig& config, const std::vector<int>& lengths,
                         int first = 1) {
  PackedBatch batch = pack(random_sequences(config, lengths));
  for (int32_t t = first; t < int32_t(batch.ids.size()); t += 3) {
    batch.scored.push_back(t);
    batch.targets.push_back((5 * t + 2) % int32_t(config.vocab_size));
  }
  return batch;
}

struct LossPass {
  double loss = 0;
  std::vector<float> gradients;
};

// The sum of the scored tokens' losses, as the objective has it.
LossPass loss_pass(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
                   const std::vector<float>& weights, const std::vector<PackedBatch>& batches,
                   bool recompute = false) {
  Arena parameters(backend, weights), gradients(backend, table.size());
  Encoder encoder(backend, config, table);
  int64_t tokens = 0, sequences = 0;
  for (const PackedBatch& batch : batches) {
    tokens = std::max(tokens, batch.tokens());
    sequences = std::max(sequences, batch.sequences());
  }
  encoder.reserve(tokens, sequences, true, recompute);
  DeviceBatch device(backend, tokens, sequences);
  LossPass result;
  for (const PackedBatch& batch : batches) {
    device.upload(batch, 0.5f);
    const Tensor logits = encoder.forward(device, parameters.data(), &kDropout, true);
    CHECK(logits.rows == int64_t(batch.scored.size()));
    if (logits.rows > 0) {
      Arena losses(backend, logits.rows);
      backend.cross_entropy(logits, device.targets(), {}, 0, device.scored_loss_scale(),
                            vector(losses.data(), logits.rows), logits);
      for (float loss : losses.values()) result.loss += 0.5 * double(loss);
    }
    encoder.backward(device, parameters.data(), gradients.data(), logits, &kDropout, 0,
                     &batch != &batches.front());
  }
  result.gradients = gradients.values();
  return result;
}

}  // namespace

TEST_CASE("gradients of the masked head equal finite differences, the tied word embedding's too") {
  auto backend = make_reference_backend();
  const EncoderConfig config = small_config(2);
  const ParameterTable table(config, head_of(config));
  const std::vector<float> weights = random_weights(table, 0.3);
  const std::vector<PackedBatch> batches = {scored_batch(config, {7, 1, 24}, 2)};
  auto loss = [&](const std::vector<float>& at) {
    return loss_pass(*backend, config, table, at, batches).loss;
  };
  const LossPass pass = loss_pass(*backend, config, table, weights, batches);
  for (Role role : {Role::word_embeddings, Role::masked_decoder, Role::masked_norm,
                    Role::masked_transform, Role::query}) {
    for (uint32_t trial = 0; trial < 3; ++trial) {
      const auto takes = [&](const Parameter& p) { return p.role == role; };
      const Slope slope = slope_along(table, trial, takes, weights, pass.gradients, loss);
      INFO("role ", int(role), " predicted ", slope.predicted, " measured ", slope.measured);
      CHECK(slope.norm > 0);
      CHECK(std::abs(slope.measured - slope.predicted) <= 2e-3 * slope.norm);
    }
  }
}

TEST_CASE("a padding token in a text trains its word row by the masked head's decoder alone") {
  constexpr int32_t kOther = 9;  // a word with the padding token's embedding, in its place
  EncoderConfig config = small_config(2);
  const ParameterTable table(config, head_of(config));
  std::vector<float> weights = random_weights(table, 0.3);
  const Parameter& words = *table.find(Role::word_embeddings, ParameterPart::weight);
  const auto row = [&](std::vector<float>& values, int64_t id) {
    return values.begin() + words.offset + id * config.hidden_size;
  };
  std::copy_n(row(weights, config.pad_token_id), config.hidden_size, row(weights, kOther));
  std::vector<PackedBatch> padded{scored_batch(config, {7, 9}), scored_batch(config, {5})};
  std::vector<PackedBatch> plain = padded;
  for (size_t i = 0; i < padded.size(); ++i) {
    for (size_t t = 0; t < padded[i].ids.size(); ++t) {
      if (t % 4 == 0) padded[i].ids[t] = int32_t(config.pad_token_id);
      if (t % 4 == 0) plain[i].ids[t] = kOther;
    }
    sort_tokens(padded[i]);
    sort_tokens(plain[i]);
  }
  for (const NamedBackend& named : model_backends()) {
    INFO(named.name);
    LossPass a = loss_pass(*named.backend, config, table, weights, padded);
    LossPass b = loss_pass(*named.backend, config, table, weights, plain);
    CHECK(a.loss == b.loss);
    const std::vector<float> of_decoder(row(b.gradients, config.pad_token_id),
                                        row(b.gradients, config.pad_token_id + 1));
    CHECK(std::equal(of_decoder.begin(), of_decoder.end(), row(a.gradients, config.pad_token_id)));
    CHECK_FALSE(std::equal(of_decoder.begin(), of_decoder.end(), row(b.gradients, kOther)));
    std::copy_n(row(a.gradients, kOther), config.hidden_size, row(b.gradients, kOther));
    CHECK(a.gradients == b.gradients);
  }
}

TEST_CASE(
    "the masked head's losses and gradients are the reference's, over several micro-batches") {
  const EncoderConfig config = small_config(2);
  const ParameterTable table(config, head_of(config));
  const std::vector<float> weights = random_weights(table, 0.3);
  // One micro-batch has nothing to predict: the first one, and one in between.
  const std::vector<PackedBatch> batches = {
      scored_batch(config, {5, 4}, 99), scored_batch(config, {7, 1, 24}),
      scored_batch(config, {3}, 99), scored_batch(config, {13, 9, 5, 1}, 0)};
  std::vector<LossPass> passes;
  for (const NamedBackend& named : model_backends()) {
    INFO(named.name);
    passes.push_back(loss_pass(*named.backend, config, table, weights, batches));
    const LossPass& pass = passes.back();
    CHECK(pass.loss == doctest::Approx(passes.front().loss).epsilon(1e-5));
    CHECK(relative_error(pass.gradients, passes.front().gradients) < 1e-4);
    const LossPass again = loss_pass(*named.backend, config, table, weights, batches, true);
    CHECK(again.loss == pass.loss);
    CHECK(again.gradients == pass.gradients);
  }
  CHECK(passes.size() > 1);
}

TEST_CASE("a micro-batch without scored tokens has no gradient") {
  const EncoderConfig config = small_config(1);
  const ParameterTable table(config, head_of(config));
  const std::vector<float> weights = random_weights(table, 0.3);
  for (const NamedBackend& named : model_backends()) {
    const LossPass pass =
        loss_pass(*named.backend, config, table, weights, {scored_batch(config, {5, 4}, 99)});
    CHECK(pass.loss == 0);
    for (float g : pass.gradients) CHECK(g == 0);
  }
}

TEST_CASE("the masked head's parameters are Hugging Face's, the decoder is none of them") {
  const EncoderConfig config = small_config(1);
  const ParameterTable table(config, head_of(config));
  for (const char* name :
       {"cls.predictions.bias", "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.dense.bias", "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.transform.LayerNorm.bias"}) {
    INFO(name);
    REQUIRE(table.find(name));
    CHECK(table.find(name)->head);
  }
  CHECK(table.find("cls.predictions.bias")->shape == std::vector<int64_t>{config.vocab_size});
  CHECK_FALSE(table.find("cls.predictions.transform.LayerNorm.weight")->decay);
  CHECK(table.find("cls.predictions.transform.dense.weight")->decay);
  CHECK_FALSE(table.find("cls.predictions.decoder.weight"));
  CHECK_FALSE(table.find("bert.pooler.dense.weight"));
}

}  // namespace finetune::test
