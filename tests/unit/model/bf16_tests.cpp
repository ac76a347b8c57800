// The model with activations in bf16.
#include <doctest/doctest.h>

#include "../shared.h"
#include "fixture.h"
#include "op_case.h"

namespace finetune::test {
namespace {

template <typename Body>
void for_each_bf16_backend(Body&& body) {
  for (const BackendFactory& factory : backends_under_test()) {
    auto backend = factory.make();
    if (!backend || backend->activation_type() != DType::bf16) continue;
    INFO(factory.name);
    body(*backend);
  }
}

}  // namespace

TEST_CASE("activations in bf16: logits and gradients are near those of the reference") {
  auto reference = make_reference_backend();
  for_each_bf16_backend([&](Backend& backend) {
    for (Head head : {Head{HeadKind::sequence, 5}, Head{HeadKind::token, 2}}) {
      for (int64_t head_size : {8, 32}) {  // kernels may treat them differently
        const char* kind = head.kind == HeadKind::sequence ? "sequence" : "token";
        INFO(kind, " head, attention heads of ", head_size);
        EncoderConfig config = small_config(3);
        config.hidden_size = 2 * head_size;
        config.num_attention_heads = 2;
        ParameterTable table(config, head);
        const std::vector<float> weights = random_weights(table, 0.1);
        PackedBatch batch = pack(random_sequences(config, {7, 1, 24, 13, 16}));
        const std::vector<float> coefficients = logit_coefficients(batch, head);
        const PassOptions options{&kDropout};
        const auto expected =
            run_pass(*reference, config, table, weights, batch, coefficients, options);
        const auto got = run_pass(backend, config, table, weights, batch, coefficients, options);
        CHECK(relative_error(got.logits, expected.logits) <= 0.02);
        CHECK(relative_error(got.gradients, expected.gradients) <= 0.03);
      }
    }
  });
}

// Changed weights take effect although products have read the earlier ones.
TEST_CASE("activations in bf16: changed weights count at once") {
  for_each_bf16_backend([&](Backend& backend) {
    const Head head{HeadKind::token, 2};
    EncoderConfig config = small_config(2);
    config.hidden_size = 24;  // rounded copies have no gaps: updates write them
    config.intermediate_size = 40;
    ParameterTable table(config, head);
    const std::vector<float> before = random_weights(table, 0.1), moments(before.size(), 0.01f);
    PackedBatch batch = pack(random_sequences(config, {7, 24}));
    DeviceBatch device(backend, batch.tokens(), batch.sequences());
    device.upload(batch);
    const auto logits_of = [&](Arena& weights) {
      Encoder encoder(backend, config, table);
      encoder.reserve(batch.tokens(), batch.sequences(), false);
      return download(backend, encoder.forward(device, weights.data(), nullptr, false));
    };
    Arena weights(backend, before);
    const std::vector<float> first = logits_of(weights);
    Arena gradient(backend, moments), m(backend, moments), v(backend, moments);
    const int64_t half = table.size() / 2;  // the rest is uploaded
    AdamW adamw;
    adamw.learning_rate = 0.1f;
    // The first element of every other part is the fifth of a pack in the rounded copies.
    std::vector<AdamWPart> parts;
    for (int64_t begin = 0; begin < half; begin += 36) {
      parts.push_back({adamw, begin, std::min<int64_t>(36, half - begin)});
    }
    backend.adamw_parts(parts, vector(weights.data(), half), vector(gradient.data(), half),
                        vector(m.data(), half), vector(v.data(), half));
    std::vector<float> after = weights.values();
    for (size_t i = size_t(half); i < after.size(); ++i) after[i] *= -1.5f;
    backend.upload(weights.data() + half, after.data() + half,
                   (after.size() - size_t(half)) * sizeof(float));
    const std::vector<float> second = logits_of(weights);
    Arena fresh(backend, after);
    CHECK(second != first);
    CHECK(second == logits_of(fresh));
    backend.fill_zero(vector(weights.data(), table.size()));
    for (float logit : logits_of(weights)) CHECK(logit == 0);
  });
}

}  // namespace finetune::test
