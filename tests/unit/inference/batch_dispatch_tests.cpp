// Batch dispatch on one process gives the model's plain answers in order. Repeated samples are
// computed once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "core/numeric/philox.h"
#include "data/packing.h"
#include "inference/batch_dispatch.h"
#include "inference/logits_cache.h"
#include "small_encoder.h"

using namespace finetune;

namespace {

constexpr int64_t kSamples = 61, kVocabulary = 50, kMicroBatch = 40;

EncoderConfig dispatch_config() {
  return test::encoder_of(
      {.words = kVocabulary, .hidden = 16, .layers = 2, .heads = 2, .inner = 32, .positions = 16});
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

void copy(const TokenizedSamples& from, int64_t i, TokenizedSamples& to) {
  append(slice(from, {i, i + 1}), to);
}

// Results in the order of arrival.
struct Came {
  std::vector<std::vector<uint32_t>> batches;  // indices of samples
  std::vector<float> logits;

  void add(const PackedBatch& batch, const float* values, Head head) {
    const bool by_token = head.kind == HeadKind::token;
    batches.push_back(batch.indices);
    const int64_t rows = by_token ? batch.tokens() : batch.sequences();
    logits.insert(logits.end(), values, values + rows * head.outputs);
  }
  std::vector<uint32_t> order() const {
    std::vector<uint32_t> all;
    for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }
  bool same_logits(const Came& other) const {
    return logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
  // In batches of other shapes products may round differently.
  bool close_to(const Came& other) const {
    return std::ranges::equal(logits, other.logits,
                              [](float a, float b) { return std::abs(a - b) < 1e-5f; });
  }
  friend bool operator==(const Came& a, const Came& b) {
    return a.batches == b.batches && a.same_logits(b);
  }
};

class Listener final : public Evaluator {
 public:
  explicit Listener(Head head, std::vector<int64_t> pieces = {}, TokenizedSamples samples = {})
      : head_(head), pieces_(std::move(pieces)), samples_(std::move(samples)) {}
  void add(const PackedBatch& batch, const float* logits) override {
    came.add(batch, logits, head_);
  }
  Metrics metrics() override { return {}; }
  void write_files(const std::filesystem::path&) override {}
  Head head() const override { return head_; }
  int64_t max_length() const override { return 16; }
  int64_t rows() const override { return int64_t(came.order().size()); }
  bool answers_each_chunk() const override { return answers_each; }
  std::optional<SampleChunk> next() override {
    if (answers_each) CHECK(rows() == begin_);
    if (piece_ == pieces_.size()) return std::nullopt;
    const int64_t end = begin_ + pieces_[piece_++];
    chunk_ = {};
    for (; begin_ < end; ++begin_) copy(samples_, begin_, chunk_);
    return SampleChunk{chunk_};
  }
  double share() const override { return 1; }

  Came came;
  bool answers_each = false;

 private:
  Head head_;
  std::vector<int64_t> pieces_;
  TokenizedSamples samples_;
  size_t piece_ = 0;
  int64_t begin_ = 0;
  TokenizedSamples chunk_;
};

struct Fixture {
  // All of `set` in one chunk.
  Listener whole() const { return Listener(head, {set.samples.size()}, set.samples); }

  Head head;
  std::unique_ptr<Communicator> comm = make_solo_communicator();
  Engine engine{make_cpu_backend(), dispatch_config(), head, *comm};
  BatchDispatcher dispatcher{engine, *comm};
  SampleSet set;

  explicit Fixture(Head h) : head(h) {
    for (const Parameter& parameter : engine.table().parameters()) {
      initialize(engine.table(), parameter, 0.5, 3, engine.weights());
    }
    engine.reserve({}, {kMicroBatch, kMicroBatch});
    set.samples = samples_of(0, kSamples);
  }

  Came plainly(int64_t most_sequences) {
    Came came;
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < set.samples.size(); ++i) lengths.push_back(set.samples.length(i));
    for (IndexRange range : micro_batches(lengths, kMicroBatch)) {
      for (int64_t begin = range.begin; begin < range.end; begin += most_sequences) {
        std::vector<uint32_t> indices(size_t(std::min(range.end - begin, most_sequences)));
        std::iota(indices.begin(), indices.end(), uint32_t(begin));
        PackedBatch batch;
        pack(set.samples, indices, {}, batch);
        std::vector<float> logits;
        engine.infer(batch, logits);
        came.add(batch, logits.data(), head);
      }
    }
    return came;
  }

  // `set` resampled from itself with repeats; returns the original index of each sample.
  std::vector<int64_t> repeat(int64_t size, uint32_t stream) {
    TokenizedSamples samples;
    std::vector<int64_t> from;
    for (int64_t i = 0; i < size; ++i) {
      from.push_back(draw(stream, uint32_t(i)) % set.samples.size());
      copy(set.samples, from.back(), samples);
    }
    set.samples = samples;
    return from;
  }
  int64_t distinct() const {
    std::set<std::pair<std::vector<int32_t>, uint32_t>> all;
    for (int64_t i = 0; i < set.samples.size(); ++i) {
      TokenizedSamples one;
      copy(set.samples, i, one);
      all.emplace(one.ids, one.second[0]);
    }
    return int64_t(all.size());
  }
};

constexpr Head kAnswers{HeadKind::token, 2}, kLabels{HeadKind::sequence, 3};
const std::vector<std::vector<int64_t>> kPieces = {
    {61}, {1, 60}, {20, 20, 20, 1}, {0, 3, 0, 0, 58, 0}, std::vector<int64_t>(61, 1)};

std::vector<uint32_t> all_in_order() {
  std::vector<uint32_t> order(static_cast<size_t>(kSamples));
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

bool go_on(double) {
  return true;
}

}  // namespace

TEST_CASE("evaluation of one process is plain evaluation") {
  Fixture f(kAnswers);
  const Came expected = f.plainly(Engine::kEvaluationSequences);
  CHECK(expected.batches.size() > 8);
  Listener listener = f.whole();
  double last = -1;
  CHECK(f.dispatcher.evaluate(listener, kMicroBatch, [&](double share) {
    CHECK(share > last);
    last = share;
    return true;
  }));
  f.dispatcher.done();
  CHECK(listener.came == expected);
  CHECK(last < 1);
}

TEST_CASE("samples in pieces are computed in the micro-batches of the whole") {
  Fixture f(kAnswers);
  for (int64_t most : {int64_t{0}, int64_t{2}}) {
    f.engine.set_evaluation_sequences(most);
    const Came expected = f.plainly(f.engine.evaluation_sequences());
    for (const auto& pieces : kPieces) {
      Listener listener(kAnswers, pieces, f.set.samples);
      CHECK(f.dispatcher.evaluate(listener, kMicroBatch, go_on) == kSamples);
      CHECK(listener.came == expected);
    }
  }
  CHECK(f.dispatcher.cache_hits() == 0);
  Listener nothing(kAnswers);
  CHECK(f.dispatcher.evaluate(nothing, kMicroBatch, go_on) == 0);
  CHECK(nothing.came.batches.empty());
}

TEST_CASE("each chunk of an input is answered before the next one is read") {
  for (Head head : {kAnswers, kLabels}) {
    for (const auto& pieces : kPieces) {
      Fixture f(head);
      Listener listener(head, pieces, f.set.samples);
      listener.answers_each = true;  // next() checks
      CHECK(f.dispatcher.evaluate(listener, kMicroBatch, go_on) == kSamples);
      CHECK(listener.came.order() == all_in_order());
      CHECK(listener.came.close_to(f.plainly(Engine::kEvaluationSequences)));
    }
  }
}

TEST_CASE("samples that come again get the same logits in their order and are computed once") {
  for (const auto& pieces : kPieces) {
    Fixture f(kLabels);
    const std::vector<int64_t> from = f.repeat(kSamples, 7);
    CHECK(f.distinct() < kSamples * 3 / 4);
    const Came expected = f.plainly(Engine::kEvaluationSequences);
    Listener listener(kLabels, pieces, f.set.samples);
    CHECK(f.dispatcher.evaluate(listener, kMicroBatch, go_on) == kSamples);
    CHECK(listener.came.order() == all_in_order());
    CHECK(listener.came.close_to(expected));
    CHECK(f.dispatcher.cache_hits() == kSamples - f.distinct());
    std::map<int64_t, std::vector<float>> first;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto row = listener.came.logits.begin() + 3 * int64_t(i);
      CHECK(std::ranges::equal(first.try_emplace(from[i], row, row + 3).first->second,
                               std::span(row, 3)));
    }
    // All of them once more: nothing is left to compute.
    Listener again = f.whole();
    CHECK(f.dispatcher.evaluate(again, kMicroBatch, [](double) { return false; }));
    CHECK(again.came.order() == all_in_order());
    CHECK(again.came.same_logits(listener.came));
    CHECK(f.dispatcher.cache_hits() == 2 * kSamples - f.distinct());
  }
}

TEST_CASE("the same tokens with another second part are another sample") {
  Fixture f(kLabels);
  f.set.samples = {};
  for (uint32_t second : {4u, 2u, 1u, 4u, 2u}) {
    f.set.samples.ids.insert(f.set.samples.ids.end(), {7, 8, 9, 8});
    f.set.samples.offsets.push_back(int64_t(f.set.samples.ids.size()));
    f.set.samples.second.push_back(second);
  }
  Listener listener = f.whole();
  CHECK(f.dispatcher.evaluate(listener, kMicroBatch, go_on));
  const std::vector<float>& logits = listener.came.logits;
  CHECK(f.dispatcher.cache_hits() == 2);
  CHECK(listener.came.close_to(f.plainly(Engine::kEvaluationSequences)));
  CHECK(logits[0] != logits[3]);
  CHECK(logits[3] != logits[6]);
  CHECK(logits[0] == logits[9]);
}

TEST_CASE("an evaluation that is stopped leaves nothing for the next one") {
  for (Head head : {kAnswers, kLabels}) {
    Fixture f(head);
    if (head.kind == HeadKind::sequence) f.repeat(kSamples, 8);
    Listener stopped = f.whole();
    int calls = 0;
    CHECK(!f.dispatcher.evaluate(stopped, kMicroBatch, [&](double) { return ++calls < 3; }));
    CHECK(calls == 3);
    Listener whole = f.whole();
    CHECK(f.dispatcher.evaluate(whole, kMicroBatch, go_on));
    CHECK(whole.came.order() == all_in_order());
    const Came expected = f.plainly(Engine::kEvaluationSequences);
    if (head.kind == HeadKind::token) CHECK(whole.came == expected);
    CHECK(whole.came.close_to(expected));
  }
}

TEST_CASE("more different samples than are remembered, and long ones") {
  constexpr int64_t kMany = 70'000;
  LogitsCache cache(1);
  TokenizedSamples samples, distinct;
  for (int64_t i = 0; i < kMany; ++i) {
    samples.ids.insert(samples.ids.end(), {int32_t(i % 35'000), 1});
    samples.offsets.push_back(int64_t(samples.ids.size()));
    samples.second.push_back(2);
  }
  cache.begin();
  cache.take(samples, distinct);
  CHECK(cache.hits() > 0);
  CHECK(cache.hits() < kMany / 2);  // there are fewer slots
  CHECK(distinct.size() == kMany - cache.hits());
  Listener listener({HeadKind::sequence, 1});
  for (int64_t i = 0; i < distinct.size(); i += 999) {
    std::vector<float> logits;
    const int64_t end = std::min(distinct.size(), i + 999);
    for (int64_t k = i; k < end; ++k) logits.push_back(float(distinct.ids[size_t(2 * k)]));
    cache.computed(logits.data(), int64_t(logits.size()));
    cache.give(listener);
  }
  REQUIRE(listener.came.logits.size() == size_t(kMany));
  int64_t wrong = 0;
  for (int64_t i = 0; i < kMany; ++i) wrong += listener.came.logits[size_t(i)] != float(i % 35'000);
  CHECK(wrong == 0);

  const int64_t before = cache.hits();
  TokenizedSamples lengthy, computed;
  for (int i = 0; i < 2; ++i) {
    lengthy.ids.insert(lengthy.ids.end(), 65, 3);
    lengthy.offsets.push_back(int64_t(lengthy.ids.size()));
    lengthy.second.push_back(65);
  }
  cache.begin();
  cache.take(lengthy, computed);
  CHECK(computed.size() == 2);
  CHECK(cache.hits() == before);
}
