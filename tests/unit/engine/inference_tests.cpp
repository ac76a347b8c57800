// Engine::infer on a backend that replays work: micro-batches are padded to shared shapes. Similar
// micro-batches share a shape, and fillers have no effect.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "core/numeric/philox.h"
#include "data/packing.h"
#include "engine/engine.h"
#include "op_case.h"
#include "ops/profiling_backend.h"
#include "small_encoder.h"

namespace finetune::test {
namespace {

using Key = std::vector<int64_t>;

// Records which work it was asked to replay and how often it was called; can hide that it replays.
class Watched final : public ProfilingBackend {
 public:
  Watched(std::unique_ptr<Backend> inner, bool replays)
      : ProfilingBackend(std::move(inner)), replays_(replays) {
    set_recording(false);
  }
  void replay(std::span<const int64_t> key, const std::function<void()>& work) override {
    keys.insert({key.begin(), key.end()});
    const auto counted = [&] {
      ++called;
      work();
    };
    ProfilingBackend::replay(key, counted);
  }
  bool replays() const override { return replays_ && ProfilingBackend::replays(); }

  std::set<Key> keys;
  int called = 0;

 private:
  bool replays_;
};

constexpr int64_t kMostTokens = 160, kMostSequences = 24, kLongest = 40;

// Heads of 32: in bf16 they are for tensor cores.
EncoderConfig inference_config() {
  return test::encoder_of(
      {.words = 50, .hidden = 64, .layers = 2, .heads = 2, .inner = 96, .positions = kLongest});
}

// An engine with a backend of its own.
struct Inference {
  std::unique_ptr<Communicator> comm = make_solo_communicator();
  Watched* backend;
  Engine engine;

  Inference(const BackendFactory& factory, Head head, bool replays)
      : Inference(std::make_unique<Watched>(factory.make(), replays), head) {}
  Inference(std::unique_ptr<Watched> watched, Head head)
      : backend(watched.get()), engine(std::move(watched), inference_config(), head, *comm) {
    engine.set_weights([&](float* arena) {
      for (const Parameter& parameter : engine.table().parameters()) {
        initialize(engine.table(), parameter, 0.3, 3, arena);
      }
    });
    engine.reserve({}, {kMostTokens, kMostSequences});
  }
  std::vector<float> infer(const PackedBatch& batch) {
    std::vector<float> logits;
    engine.infer(batch, logits);
    return logits;
  }
};

PackedBatch batch_of(const std::vector<int>& lengths, uint32_t stream) {
  TokenizedSamples samples;
  for (int length : lengths) {
    for (int t = 0; t < length; ++t) {
      const uint32_t bits = philox({4, 4}, {stream, uint32_t(samples.ids.size()), 0, 0})[0];
      samples.ids.push_back(int32_t(bits % 50));
    }
    samples.offsets.push_back(int64_t(samples.ids.size()));
    samples.second.push_back(uint32_t(length / 2));
  }
  std::vector<uint32_t> all(lengths.size());
  std::iota(all.begin(), all.end(), 0u);
  PackedBatch batch;
  pack(samples, all, {}, batch);
  return batch;
}

template <typename Check>
void for_backends(Check&& check) {
  for (const BackendFactory& factory : backends_under_test()) {
    for (Head head : {Head{HeadKind::sequence, 3}, Head{HeadKind::token, 2}}) {
      INFO(factory.name, ", ", head.outputs, " outputs");
      check(factory, head);
    }
  }
}

// Of one shape after padding.
const std::vector<std::vector<int>> kAlike = {{7, 2, 24, 13},         {23, 3, 17, 3},
                                              {8, 8, 8, 8, 20},       {30, 10, 2, 6},
                                              {9, 9, 9, 9, 17, 3, 3}, {20, 24, 2, 2}};

TEST_CASE("inference of a micro-batch that is filled up has the bits of its own sequences") {
  for_backends([](const BackendFactory& factory, Head head) {
    Inference plain(factory, head, false), filling(factory, head, true);
    std::vector<std::vector<int>> lengths = kAlike;
    lengths.push_back({30, 29});  // as many tokens as kAlike in fewer sequences
    lengths.push_back({1});
    lengths.push_back({40, 40, 40, 40});                     // most tokens
    lengths.push_back(std::vector<int>(kMostSequences, 1));  // most sequences
    lengths.push_back(std::vector<int>(kMostSequences, 6));
    for (uint32_t round = 0; round < 3; ++round) {  // called, recorded, replayed
      for (const std::vector<int>& of : lengths) {
        const PackedBatch batch = batch_of(of, round);
        const std::vector<float> logits = filling.infer(batch);
        const int64_t rows = head.kind == HeadKind::token ? batch.tokens() : batch.sequences();
        CHECK(int64_t(logits.size()) == rows * head.outputs);
        CHECK(logits == plain.infer(batch));
        CHECK(batch.fillers == 0);
      }
    }
    CHECK(filling.backend->called < plain.backend->called);
  });
}

TEST_CASE("inference of micro-batches of like size is work that recurs") {
  for_backends([](const BackendFactory& factory, Head head) {
    Inference filling(factory, head, true);
    for (const std::vector<int>& of : kAlike) filling.infer(batch_of(of, 1));
    CHECK(filling.backend->keys.size() == 1);
    CHECK(filling.backend->called == 2);  // called once directly, once for recording
    Inference plain(factory, head, false);
    for (const std::vector<int>& of : kAlike) plain.infer(batch_of(of, 1));
    CHECK(plain.backend->keys.size() == kAlike.size());
  });
}

TEST_CASE("inference takes the weights as they have become") {
  for_backends([](const BackendFactory& factory, Head head) {
    Inference changed(factory, head, true);
    const PackedBatch batch = batch_of(kAlike[0], 1);
    for (int i = 0; i < 4; ++i) changed.infer(batch);
    Inference fresh(factory, head, true);
    for (Inference* each : {&changed, &fresh}) {
      each->engine.set_weights([&](float* arena) {
        for (const Parameter& parameter : each->engine.table().parameters()) {
          initialize(each->engine.table(), parameter, 0.2, 8, arena);
        }
      });
    }
    CHECK(changed.infer(batch) == fresh.infer(batch));
  });
}

TEST_CASE("training keeps activations' results in memory that nobody else uses") {
  const auto comm = make_solo_communicator();
  ::setenv("HOST_CUDA_MEMORY_MB", "1024", 1);
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(std::string(factory.name));
    const auto other = factory.make();
    const auto used = [&] {
      Engine engine(factory.make(), inference_config(), {HeadKind::sequence, 3}, *comm);
      engine.reserve({16384, 64}, {});
      return engine.backend().device_memory().used;
    };
    const int64_t alone = used();
    const auto taken = other->allocate(size_t{750} << 20);
    const int64_t beside = used();
    CHECK(beside < alone);
    ::setenv("FINETUNE_CUDA_KEPT", "0", 1);
    CHECK(beside == used());
    ::unsetenv("FINETUNE_CUDA_KEPT");
  }
  ::unsetenv("HOST_CUDA_MEMORY_MB");
}

TEST_CASE("of hidden words inference gives the loss and the rank, of the logits") {
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(factory.name);
    Inference masked(factory, {HeadKind::masked, 50}, false);
    PackedBatch batch = batch_of({7, 2, 24, 13}, 1);
    CHECK(masked.infer(batch).empty());
    for (int32_t t = 1; t < 46; t += 4) {
      batch.scored.push_back(t);
      batch.targets.push_back((11 * t) % 50);
    }
    const std::vector<float> scores = masked.infer(batch);
    REQUIRE(scores.size() == 2 * batch.scored.size());
    const DeviceBatch& computed = masked.engine.upload_for_inference(batch);
    masked.engine.infer_chunk(0, computed);
    const Tensor out = masked.engine.encoder().output_of({0, ChunkSlot::kInference}, computed);
    REQUIRE(out.rows == int64_t(batch.scored.size()));
    std::vector<float> logits(size_t(out.size()));
    masked.backend->download(logits.data(), out.data, logits.size() * sizeof(float));
    for (size_t i = 0; i < batch.scored.size(); ++i) {
      const std::span<const float> row = std::span(logits).subspan(i * 50, 50);
      const int32_t target = batch.targets[i];
      double sum = 0;
      int rank = 0;
      for (int32_t w = 0; w < 50; ++w) {
        sum += std::exp(double(row[size_t(w)]));
        rank += row[size_t(w)] > row[size_t(target)];
      }
      CHECK(scores[2 * i] == doctest::Approx(std::log(sum) - double(row[size_t(target)])));
      CHECK(scores[2 * i + 1] == float(rank));
    }
  }
}

}  // namespace
}  // namespace finetune::test
