// Properties of the model's inference, and the memory of its passes.
#include <doctest/doctest.h>

#include <cstring>

#include "../shared.h"
#include "fixture.h"
#include "model/encoder_layer.h"
#include "ops/reference/reference_backend.h"

namespace finetune::test {
namespace {

// Counts allocations and puts a guard behind each.
class CountingBackend : public ReferenceBackend {
 public:
  static constexpr size_t kGuard = 4096;

  std::shared_ptr<void> allocate(size_t bytes) override {
    auto memory = ReferenceBackend::allocate(bytes + kGuard);
    std::memset(static_cast<char*>(memory.get()) + bytes, 0x5A, kGuard);
    allocated += int64_t(bytes);
    pieces.push_back({memory, bytes});
    return memory;
  }
  bool guards_intact() const {
    for (const auto& [memory, bytes] : pieces) {
      const char* guard = static_cast<const char*>(memory.get()) + bytes;
      for (size_t i = 0; i < kGuard; ++i) {
        if (guard[i] != 0x5A) return false;
      }
    }
    return true;
  }

  int64_t allocated = 0;
  std::vector<std::pair<std::shared_ptr<void>, size_t>> pieces;
};

// Splits whole layers into operations, so that the model can run them on any machine.
class WholeReference : public CountingBackend {
 public:
  bool has_layer(const LayerShape&) const override { return true; }
};

}  // namespace

TEST_CASE("inference gives the logits of training without dropout") {
  for (const NamedBackend& named : model_backends()) {
    Backend& backend = *named.backend;
    for (Head head : kHeads) {
      for (int64_t layers : {1, 3}) {
        INFO(named.name, ", ", text(head), " head, ", layers, " layers");
        EncoderConfig config = small_config(layers);
        ParameterTable table(config, head);
        Arena weights(backend, random_weights(table, 0.3));
        PackedBatch batch = pack(random_sequences(config, {7, 1, 24, 13}));
        DeviceBatch device(backend, 60, 6);  // larger than the batch
        device.upload(batch);
        Encoder trained(backend, config, table), inferring(backend, config, table);
        trained.reserve(60, 6, true);
        inferring.reserve(60, 6, false);
        auto kept = download(backend, trained.forward(device, weights.data(), nullptr, true));
        auto same = download(backend, trained.forward(device, weights.data(), nullptr, false));
        auto bare = download(backend, inferring.forward(device, weights.data(), nullptr, false));
        CHECK(kept == same);
        CHECK(kept == bare);
      }
    }
  }
}

TEST_CASE("the model uses whole-layer operations if the backend has them") {
  for (Head head : kHeads) {
    for (int64_t layers : {1, 3}) {
      INFO(text(head), " head, ", layers, " layers");
      WholeReference backend;
      auto parts = make_reference_backend();
      const EncoderConfig config = small_config(layers);
      ParameterTable table(config, head);
      const std::vector<float> weights = random_weights(table, 0.3);
      PackedBatch batch = pack(random_sequences(config, {7, 1, 24, 13}));
      const int64_t t = batch.tokens(), b = batch.sequences();
      const auto logits_by = [&](Backend& by, BatchSize training) {
        Arena arena(by, weights);
        DeviceBatch device(by, t, b);
        device.upload(batch);
        Encoder encoder(by, config, table);
        encoder.reserve(training, {t, b}, false);
        return download(by, encoder.forward(device, arena.data(), nullptr, false));
      };
      const std::vector<float> expected = logits_by(*parts, {});
      for (BatchSize training : {BatchSize{}, BatchSize{2, 1}, BatchSize{3 * t, b}}) {
        // bf16 is between the two halves of a layer.
        CHECK(relative_error(logits_by(backend, training), expected) <= 0.02);
      }
      CHECK(backend.guards_intact());
    }
  }
}

TEST_CASE("whole layers give the logits of layers in parts, and each sequence its own") {
  auto backend = make_cpu_backend(DType::bf16);
  for (Head head : kHeads) {
    for (int64_t layers : {1, 3}) {
      INFO(text(head), " head, ", layers, " layers");
      EncoderConfig config = small_config(layers);
      config.hidden_size = 64;
      config.num_attention_heads = 2;
      config.intermediate_size = 160;
      if (!has_whole_layers(*backend, config))
        return skip("no bf16 tiles: layers are computed in parts");
      ParameterTable table(config, head);
      const std::vector<float> values = random_weights(table, 0.1);
      Arena weights(*backend, values);
      const std::vector<Sequence> sequences = random_sequences(config, {7, 1, 24, 13, 16});
      const auto logits_of = [&](const std::vector<Sequence>& some, bool keep) {
        PackedBatch batch = pack(some);
        DeviceBatch device(*backend, batch.tokens(), batch.sequences());
        device.upload(batch);
        Encoder encoder(*backend, config, table);
        encoder.reserve(batch.tokens(), batch.sequences(), keep);
        return download(*backend, encoder.forward(device, weights.data(), nullptr, keep));
      };
      const std::vector<float> whole = logits_of(sequences, false);
      // Queries, keys, values and probabilities are rounded to bf16 too.
      CHECK(relative_error(whole, logits_of(sequences, true)) <= 0.02);
      std::vector<float> alone;
      for (const Sequence& sequence : sequences) {
        const std::vector<float> logits = logits_of({sequence}, false);
        alone.insert(alone.end(), logits.begin(), logits.end());
      }
      CHECK(alone == whole);
      const ParameterTable rounded(config, head, ModelPart::whole(config), DType::bf16);
      const Arena halves(*backend, rounded_products(table, values, rounded));
      const PackedBatch batch = pack(sequences);
      DeviceBatch device(*backend, batch.tokens(), batch.sequences());
      device.upload(batch);
      Encoder encoder(*backend, config, rounded);
      encoder.reserve(batch.tokens(), batch.sequences(), false);
      CHECK(download(*backend, encoder.forward(device, halves.data(), nullptr, false)) == whole);
    }
  }
}

TEST_CASE("activations take the planned memory, no more and no less") {
  struct Use {
    bool training, recompute;
  };
  for (Head head : kHeads) {
    for (int64_t layers : {1, 2, 3}) {
      for (auto [training, recompute] : {Use{false, false}, Use{true, false}, Use{true, true}}) {
        for (const std::vector<int>& lengths : {std::vector<int>{1}, {24, 24, 24}, {1, 1, 1, 1}}) {
          CountingBackend backend;
          EncoderConfig config = small_config(layers);
          ParameterTable table(config, head);
          PackedBatch batch = pack(random_sequences(config, lengths));
          const int64_t t = batch.tokens(), b = batch.sequences();
          Arena weights(backend, random_weights(table, 0.3)), gradients(backend, table.size());
          Arena dlogits(backend, logit_coefficients(batch, head));
          DeviceBatch device(backend, t, b);
          device.upload(batch);
          Encoder encoder(backend, config, table);
          const int64_t before = backend.allocated;
          encoder.reserve(t, b, training, recompute);
          CHECK(backend.allocated - before == encoder.activation_bytes(t, b, training, recompute));
          const int64_t reserved = backend.allocated;
          Tensor logits = encoder.forward(device, weights.data(), &kDropout, training);
          if (training) {
            encoder.backward(device, weights.data(), gradients.data(),
                             matrix(dlogits.data(), logits.rows, logits.cols), &kDropout);
          }
          CHECK(backend.allocated == reserved);
          CHECK(backend.guards_intact());
        }
      }
    }
  }
}

TEST_CASE("memory grows with the batch and is least for inference") {
  auto backend = make_reference_backend();
  for (Head head : kHeads) {
    EncoderConfig config = named_shape("minilm");
    ParameterTable table(config, head);
    Encoder encoder(*backend, config, table);
    CHECK(encoder.activation_bytes(512, 32, true) > 2 * encoder.activation_bytes(512, 32, false));
    CHECK(encoder.activation_bytes(513, 32, true) > encoder.activation_bytes(512, 32, true));
    CHECK(encoder.activation_bytes(512, 33, true) >= encoder.activation_bytes(512, 32, true));
    // Six layers keep an input each and share the rest.
    CHECK(2 * encoder.activation_bytes(512, 32, true, true) <
          encoder.activation_bytes(512, 32, true));
  }
}

}  // namespace finetune::test
