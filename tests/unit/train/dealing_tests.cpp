// Evaluation dealt out to one process is the model's plain answer to each micro-batch, in order.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "core/philox.h"
#include "data/packing.h"
#include "train/dealing.h"

using namespace finetune;

namespace {

constexpr int64_t kSamples = 61, kVocabulary = 50, kMicroBatch = 40;

BertConfig dealing_config() {
  BertConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 32;
  config.max_position_embeddings = 16;
  return config;
}

uint32_t draw(uint32_t stream, uint32_t i) {
  return philox({1, 9}, {stream, i, 0, 0})[0];
}

TokenizedSamples samples_of(int64_t begin, int64_t end) {
  TokenizedSamples samples;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t length = 1 + draw(1, uint32_t(i)) % 16;
    for (int64_t t = 0; t < length; ++t) {
      samples.ids.push_back(int32_t(draw(2, uint32_t(100 * i + t)) % kVocabulary));
    }
    samples.offsets.push_back(int64_t(samples.ids.size()));
    samples.second.push_back(draw(3, uint32_t(i)) % uint32_t(length + 1));
  }
  return samples;
}

// What came, in the order in which it came.
struct Came {
  std::vector<std::vector<uint32_t>> batches;  // indices of samples
  std::vector<float> logits;

  void add(const PackedBatch& batch, const float* values, int64_t columns) {
    batches.push_back(batch.indices);
    logits.insert(logits.end(), values, values + batch.sequences() * columns);
  }
  friend bool operator==(const Came& a, const Came& b) {
    return a.batches == b.batches && a.logits.size() == b.logits.size() &&
           std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)) == 0;
  }
};

class Listener final : public FileEvaluation {
 public:
  explicit Listener(std::vector<int64_t> pieces = {}) : pieces_(std::move(pieces)) {}
  void add(const PackedBatch& batch, const float* logits) override { came.add(batch, logits, 3); }
  Metrics metrics() override { return {}; }
  void write_files(const std::filesystem::path&) override {}
  Head head() const override { return {HeadKind::sequence, 3}; }
  int64_t max_length() const override { return 16; }
  std::vector<std::string> describe() const override { return {}; }
  std::vector<std::string> describe_samples() const override { return {}; }
  void open_files(const std::filesystem::path&) override {}
  const SampleSet* next() override {
    if (piece_ == pieces_.size()) return nullptr;
    const int64_t end = begin_ + pieces_[piece_++];
    set_.samples = samples_of(begin_, end);
    begin_ = end;
    return &set_;
  }
  double share() const override { return 1; }

  Came came;

 private:
  std::vector<int64_t> pieces_;
  size_t piece_ = 0;
  int64_t begin_ = 0;
  SampleSet set_;
};

struct Fixture {
  std::unique_ptr<Communicator> comm = make_solo_communicator();
  Engine engine{make_cpu_backend(), dealing_config(), Head{HeadKind::sequence, 3}, *comm};
  Dealer dealer{engine, *comm};
  SampleSet set;

  Fixture() {
    for (const Parameter& parameter : engine.table().parameters()) {
      initialize(engine.table(), parameter, 0.5, 3, engine.weights());
    }
    engine.reserve({}, {kMicroBatch, kMicroBatch});
    set.samples = samples_of(0, kSamples);
  }

  Came plainly(int64_t most_sequences) {
    Came came;
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < kSamples; ++i) lengths.push_back(set.samples.length(i));
    for (IndexRange range : micro_batches(lengths, kMicroBatch)) {
      for (int64_t begin = range.begin; begin < range.end; begin += most_sequences) {
        std::vector<uint32_t> indices(size_t(std::min(range.end - begin, most_sequences)));
        std::iota(indices.begin(), indices.end(), uint32_t(begin));
        PackedBatch batch;
        pack(set.samples, indices, {}, batch);
        std::vector<float> logits;
        engine.infer(batch, logits);
        came.add(batch, logits.data(), 3);
      }
    }
    return came;
  }
};

}  // namespace

TEST_CASE("evaluation of one process is plain evaluation") {
  Fixture f;
  const Came expected = f.plainly(Engine::kEvaluationSequences);
  CHECK(expected.batches.size() > 8);
  Listener listener;
  double last = -1;
  CHECK(f.dealer.evaluate(f.set, listener, kMicroBatch, [&](double share) {
    CHECK(share > last);
    last = share;
    return true;
  }));
  f.dealer.done();
  CHECK(listener.came == expected);
  CHECK(last < 1);
}

TEST_CASE("samples that come piece by piece are computed in the micro-batches of the whole") {
  Fixture f;
  for (int64_t most : {int64_t{0}, int64_t{2}}) {
    f.engine.set_evaluation_sequences(most);
    const Came expected = f.plainly(f.engine.evaluation_sequences());
    for (const std::vector<int64_t>& pieces : {std::vector<int64_t>{61},
                                               {1, 60},
                                               {20, 20, 20, 1},
                                               {0, 3, 0, 0, 58, 0},
                                               std::vector<int64_t>(61, 1)}) {
      Listener listener(pieces);
      f.dealer.evaluate(listener, kMicroBatch, [](double) {});
      CHECK(listener.came == expected);
    }
  }
  Listener nothing;
  f.dealer.evaluate(nothing, kMicroBatch, [](double) {});
  CHECK(nothing.came.batches.empty());
}

TEST_CASE("an evaluation that is stopped leaves nothing for the next one") {
  Fixture f;
  Listener stopped;
  int calls = 0;
  CHECK(!f.dealer.evaluate(f.set, stopped, kMicroBatch, [&](double) { return ++calls < 3; }));
  CHECK(calls == 3);
  Listener whole;
  CHECK(f.dealer.evaluate(f.set, whole, kMicroBatch, [](double) { return true; }));
  CHECK(whole.came == f.plainly(Engine::kEvaluationSequences));
}
