// Properties of the model on any backend: packing, micro-batches, dropout, freezing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../shared.h"
#include "fixture.h"
#include "ops/reference/reference_backend.h"

namespace finetune::test {
namespace {

void add_to(std::vector<float>& sum, const std::vector<float>& x) {
  sum.resize(x.size(), 0.0f);
  for (size_t i = 0; i < x.size(); ++i) sum[i] += x[i];
}

}  // namespace

TEST_CASE("gradients and logits do not depend on packing, with dropout") {
  const std::vector<std::vector<std::vector<int>>> cuts = {
      {{0}, {1}, {2}, {3}, {4}, {5}}, {{0, 1}, {2}, {3, 4, 5}}, {{5, 0, 3, 1, 4, 2}}};
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      EncoderConfig config = small_config(2);
      ParameterTable table(config, head);
      std::vector<float> weights = random_weights(table, 0.3);
      std::vector<Sequence> sequences = random_sequences(config, {7, 1, 24, 13, 2, 9});
      PackedBatch whole = pack(sequences);
      PassResult expected = run_pass(*named.backend, config, table, weights, whole,
                                     logit_coefficients(whole, head), {&kDropout});
      for (const auto& cut : cuts) {
        INFO(named.name, ", ", text(head), " head, ", cut.size(), " micro-batches");
        std::vector<float> gradients, logits;
        for (const auto& members : cut) {
          std::vector<Sequence> part;
          for (int i : members) part.push_back(sequences[size_t(i)]);
          PackedBatch batch = pack(part);
          PassResult result = run_pass(*named.backend, config, table, weights, batch,
                                       logit_coefficients(batch, head), {&kDropout});
          add_to(gradients, result.gradients);
          logits.insert(logits.end(), result.logits.begin(), result.logits.end());
        }
        CHECK(relative_error(gradients, expected.gradients) <= kSameSum);
        if (cut.size() > 1) CHECK(relative_error(logits, expected.logits) <= kSameSum);
      }
    }
  }
}

TEST_CASE("dropout changes the result, its seed and step change the masks") {
  auto backend = make_reference_backend();
  EncoderConfig config = small_config(2);
  ParameterTable table(config, kHeads[0]);
  std::vector<float> weights = random_weights(table, 0.3);
  PackedBatch batch = pack(random_sequences(config, {7, 5}));
  auto logits = [&](const DropoutPlan* plan) {
    return run_pass(*backend, config, table, weights, batch, logit_coefficients(batch, kHeads[0]),
                    {plan})
        .logits;
  };
  DropoutPlan off{1234, 7, 0, 0, 0};
  CHECK(logits(&off) == logits(nullptr));
  CHECK(logits(&kDropout) == logits(&kDropout));
  for (double DropoutPlan::*site :
       {&DropoutPlan::hidden, &DropoutPlan::attention, &DropoutPlan::head}) {
    DropoutPlan plan = off;
    plan.*site = 0.5;
    CHECK(logits(&plan) != logits(nullptr));
    DropoutPlan other_seed = plan, other_step = plan;
    other_seed.seed = 5;
    other_step.step = 8;
    CHECK(logits(&other_seed) != logits(&plan));
    CHECK(logits(&other_step) != logits(&plan));
  }
}

// A token head with identity weights outputs the encoder's result for all tokens and passes any
// token's gradient back: the computation that the sequence head abbreviates.
TEST_CASE("the last layer at first tokens equals the full computation") {
  for (const NamedBackend& named : model_backends()) {
    for (int64_t layers : {1, 3}) {
      INFO(named.name, ", ", layers, " layers");
      Backend& backend = *named.backend;
      EncoderConfig config = small_config(layers);
      const int64_t h = config.hidden_size;
      ParameterTable short_table(config, {HeadKind::sequence, 5});
      ParameterTable full_table(config, {HeadKind::token, h});
      std::vector<float> short_weights = random_weights(short_table, 0.3);
      std::vector<float> full_weights(size_t(full_table.size()), 0.0f);
      for (const Parameter& p : full_table.parameters()) {
        const Parameter* other = short_table.find(p.name);
        if (!other) continue;
        std::copy_n(short_weights.begin() + other->offset, p.size(),
                    full_weights.begin() + p.offset);
      }
      Tensor identity = full_table.view(full_weights.data(), "qa_outputs.weight");
      for (int64_t i = 0; i < h; ++i) identity.f32()[i * h + i] = 1;

      PackedBatch batch = pack(random_sequences(config, {9, 1, 24}));
      DropoutPlan plan = kDropout;
      plan.head = 0;  // there is no dropout in the token head
      std::vector<float> coefficients = logit_coefficients(batch, {HeadKind::sequence, 5});
      PassResult cut =
          run_pass(backend, config, short_table, short_weights, batch, coefficients, {&plan});

      // The sequence head and its gradient by hand, on the full computation's first tokens.
      PassResult full = run_pass(backend, config, full_table, full_weights, batch,
                                 std::vector<float>(size_t(batch.tokens() * h), 0.0f), {&plan});
      auto reference = make_reference_backend();
      const int64_t b = batch.sequences();
      std::vector<float> first(size_t(b * h)), before(first), pooled(first), dpooled(first);
      std::vector<float> logits(size_t(b * 5)), dfirst(first);
      for (int64_t s = 0; s < b; ++s) {
        std::copy_n(full.logits.begin() + batch.offsets[size_t(s)] * h, h, first.begin() + s * h);
      }
      auto weight = [&](const char* name) { return short_table.view(short_weights.data(), name); };
      Tensor x = matrix(before.data(), b, h), dx = matrix(dpooled.data(), b, h);
      reference->linear(matrix(first.data(), b, h), weight("bert.pooler.dense.weight"),
                        weight("bert.pooler.dense.bias"), x);
      reference->activation(Activation::tanh, x, matrix(pooled.data(), b, h));
      reference->linear(matrix(pooled.data(), b, h), weight("classifier.weight"),
                        weight("classifier.bias"), matrix(logits.data(), b, 5));
      CHECK(relative_error(cut.logits, logits) <= kSameSum);
      reference->linear_backward_input(matrix(coefficients.data(), b, 5),
                                       weight("classifier.weight"), dx, false);
      reference->activation_backward(Activation::tanh, x, dx, dx, {});
      reference->linear_backward_input(dx, weight("bert.pooler.dense.weight"),
                                       matrix(dfirst.data(), b, h), false);
      std::vector<float> dencoder(size_t(batch.tokens() * h), 0.0f);
      for (int64_t s = 0; s < b; ++s) {
        std::copy_n(dfirst.begin() + s * h, h, dencoder.begin() + batch.offsets[size_t(s)] * h);
      }
      full = run_pass(backend, config, full_table, full_weights, batch, dencoder, {&plan});
      // Key biases have a mathematical gradient of zero, so they are compared relative to the
      // largest gradient.
      double largest = 0;
      for (float g : cut.gradients) largest = std::max(largest, double(std::abs(g)));
      for (const Parameter& p : full_table.parameters()) {
        const Parameter* other = short_table.find(p.name);
        if (!other) continue;
        auto a = cut.gradients.begin() + other->offset;
        auto f = full.gradients.begin() + p.offset;
        INFO(p.name);
        CHECK(relative_error({a, a + p.size()}, {f, f + p.size()}, 1e-2 * largest) <= 4 * kSameSum);
      }
    }
  }
}

TEST_CASE("gradients of the whole model equal finite differences, with dropout") {
  auto backend = make_reference_backend();
  const std::vector<std::vector<int>> shapes = {{1}, {7, 1, 24}};
  for (Head head : kHeads) {
    for (int64_t layers : {1, 2}) {
      for (const auto& lengths : shapes) {
        INFO(text(head), " head, ", layers, " layers, ", lengths.size(), " sequences");
        EncoderConfig config = small_config(layers);
        ParameterTable table(config, head);
        const std::vector<float> weights = random_weights(table, 0.3);
        PackedBatch batch = pack(random_sequences(config, lengths));
        std::vector<float> coefficients = logit_coefficients(batch, head);
        auto loss = [&](const std::vector<float>& at) {
          PassResult result =
              run_pass(*backend, config, table, at, batch, coefficients, {&kDropout});
          double sum = 0;
          for (size_t i = 0; i < coefficients.size(); ++i) {
            sum += double(coefficients[i]) * result.logits[i];
          }
          return sum;
        };
        PassResult pass =
            run_pass(*backend, config, table, weights, batch, coefficients, {&kDropout});
        for (uint32_t trial = 0; trial < 4; ++trial) {
          // In the last trial only biases.
          const auto takes = [&](const Parameter& p) {
            return trial != 3 || p.name.ends_with(".bias");
          };
          const Slope slope = slope_along(table, trial, takes, weights, pass.gradients, loss);
          INFO("predicted ", slope.predicted, " measured ", slope.measured, " norm ", slope.norm);
          CHECK(std::abs(slope.measured - slope.predicted) <= 1e-3 * slope.norm);
        }
      }
    }
  }
}

TEST_CASE("frozen layers get no gradient, the others get the same") {
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      EncoderConfig config = small_config(3);
      ParameterTable table(config, head);
      std::vector<float> weights = random_weights(table, 0.3);
      PackedBatch batch = pack(random_sequences(config, {7, 1, 12}));
      std::vector<float> coefficients = logit_coefficients(batch, head);
      auto gradients = [&](int lowest) {
        return run_pass(*named.backend, config, table, weights, batch, coefficients,
                        {&kDropout, lowest})
            .gradients;
      };
      std::vector<float> all = gradients(0);
      for (int lowest = 0; lowest <= 5; ++lowest) {
        std::vector<float> some = gradients(lowest);
        for (const Parameter& p : table.parameters()) {
          INFO(named.name, ", ", text(head), " head, lowest ", lowest, " ", p.name);
          auto begin = some.begin() + p.offset;
          if (p.layer < lowest) {
            CHECK(std::all_of(begin, begin + p.size(), [](float g) { return g == 0; }));
          } else {
            CHECK(std::equal(begin, begin + p.size(), all.begin() + p.offset));
          }
        }
      }
    }
  }
}

TEST_CASE("recomputed activations give the same bits, over several micro-batches") {
  const std::vector<std::vector<int>> micro_batches = {{7, 1, 24}, {2}, {13, 9, 5, 1}};
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      for (int64_t layers : {1, 2, 4}) {
        for (int lowest = 0; lowest <= int(layers) + 1; ++lowest) {
          INFO(named.name, ", ", text(head), " head, ", layers, " layers, lowest ", lowest);
          Backend& backend = *named.backend;
          EncoderConfig config = small_config(layers);
          ParameterTable table(config, head);
          Arena weights(backend, random_weights(table, 0.3));
          auto gradients_and_logits = [&](bool recompute) {
            Arena gradients(backend, table.size());
            DeviceBatch device(backend, 32, 4);
            Encoder encoder(backend, config, table);
            encoder.reserve(32, 4, true, recompute);
            std::vector<float> values;
            for (const std::vector<int>& lengths : micro_batches) {
              PackedBatch batch = pack(random_sequences(config, lengths));
              device.upload(batch);
              Tensor logits = encoder.forward(device, weights.data(), &kDropout, true);
              std::vector<float> kept = download(backend, logits);
              values.insert(values.end(), kept.begin(), kept.end());
              Arena dlogits(backend, logit_coefficients(batch, head));
              encoder.backward(device, weights.data(), gradients.data(),
                               matrix(dlogits.data(), logits.rows, logits.cols), &kDropout, lowest);
            }
            std::vector<float> sums = gradients.values();
            values.insert(values.end(), sums.begin(), sums.end());
            return values;
          };
          CHECK(gradients_and_logits(true) == gradients_and_logits(false));
        }
      }
    }
  }
}

TEST_CASE("kept results of activations take the memory that is there, and give the same bits") {
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      for (int64_t shards : {1, 2}) {
        INFO(named.name, ", ", text(head), " head, ", shards, " tensor shards");
        Backend& backend = *named.backend;
        EncoderConfig config = small_config(3);
        config.hidden_size = 64;
        config.num_attention_heads = 2;
        config.intermediate_size = 96;
        const ModelPart part = ModelPart::whole(config, shards);
        const ParameterTable table(config, head, part);
        Arena weights(backend, random_weights(table, 0.3));
        auto gradients = [&](int64_t kept_bytes, bool recompute, int64_t& taken) {
          Arena sums(backend, table.size());
          DeviceBatch device(backend, 32, 4);
          Encoder encoder(backend, config, table, part);
          encoder.reserve({32, 4}, {32, 4}, recompute, 1, 0, kept_bytes);
          taken = encoder.activation_bytes(32, 4, true, recompute);
          for (const std::vector<int>& lengths : {std::vector<int>{7, 1, 24}, {13, 9, 5, 1}}) {
            device.upload(pack(random_sequences(config, lengths)));
            const Tensor logits = encoder.forward(device, weights.data(), &kDropout, true);
            encoder.backward(device, weights.data(), sums.data(), logits, &kDropout);
          }
          return sums.values();
        };
        int64_t least = 0, most = 0, taken = 0;
        const std::vector<float> expected = gradients(0, false, least);
        CHECK(gradients(int64_t{1} << 30, false, most) == expected);
        const int64_t rows = 2 * 32 + (config.reads_first_only(head.kind) ? 4 : 32);
        const int64_t element = backend.activation_type() == DType::bf16 ? 2 : 4;
        CHECK(most - least == rows * config.intermediate_size * element);
        CHECK(gradients(most, false, taken) == expected);
        CHECK(taken == most);
        CHECK(gradients(most - 1, false, taken) == expected);
        CHECK(taken == least);
        CHECK(gradients(most, true, taken) == expected);
        CHECK(taken < least);
      }
    }
  }
}

TEST_CASE("gradients are accumulated") {
  auto backend = make_reference_backend();
  EncoderConfig config = small_config(2);
  ParameterTable table(config, kHeads[0]);
  Arena weights(*backend, random_weights(table, 0.3)), gradients(*backend, table.size());
  PackedBatch batch = pack(random_sequences(config, {7, 3}));
  DeviceBatch device(*backend, 10, 2);
  device.upload(batch);
  Encoder encoder(*backend, config, table);
  encoder.reserve(10, 2, true);
  std::vector<float> once;
  for (int time = 0; time < 2; ++time) {
    encoder.forward(device, weights.data(), nullptr, true);
    Arena dlogits(*backend, logit_coefficients(batch, kHeads[0]));
    encoder.backward(device, weights.data(), gradients.data(), matrix(dlogits.data(), 2, 5),
                     nullptr);
    if (time == 0) once = gradients.values();
  }
  std::vector<float> twice = once;
  add_to(twice, once);
  CHECK(relative_error(gradients.values(), twice) <= kSameSum);
}

}  // namespace finetune::test
