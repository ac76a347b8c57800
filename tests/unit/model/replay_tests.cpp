// Replayed micro-batches: work recorded for one shape serves others of that shape. Filler sequences
// have no effect, and recorded work is correct for other micro-batches, steps and runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "../shared.h"
#include "core/files/text_file.h"
#include "data/packing.h"
#include "fixture.h"
#include "model/activations.h"
#include "op_case.h"

namespace finetune::test {
namespace {

PackedBatch filled(PackedBatch batch) {
  fill_up(batch);
  return batch;
}

// Heads of 32: in bf16 they are for tensor cores.
EncoderConfig config_of_two_heads() {
  EncoderConfig config = small_config(2);
  config.hidden_size = 64;
  config.num_attention_heads = 2;
  return config;
}

// A model whose micro-batches all use the largest one's memory.
struct Place {
  Backend& backend;
  Head head;
  EncoderConfig config;
  ParameterTable table{config, head};
  Arena weights{backend, table.size()}, gradients{backend, table.size()};
  Arena labels{backend, 128}, losses{backend, 128};
  Arena streams{backend, int64_t(3 * dropout_streams(config, 0, 0).size())};
  double range = 0;
  DeviceBatch batch{backend, 128, 64};
  Encoder encoder{backend, config, table};

  Place(Backend& b, Head h, const EncoderConfig& c = config_of_two_heads())
      : backend(b), head(h), config(c) {
    encoder.reserve(128, 64, true);
  }
};

struct Step {
  double range;  // of the weights
  PackedBatch batch;
  uint64_t seed;
  uint32_t step;
  float scale;
  bool in_memory;  // seed and step in memory instead of arguments
  bool replays;
};
struct StepOutcome {
  std::vector<float> losses, gradients;
  bool called = false;
  bool operator==(const StepOutcome& other) const {
    return losses == other.losses && gradients == other.gradients;
  }
};

StepOutcome take(Place& place, const Step& step) {
  Backend& backend = place.backend;
  const int64_t sequences = step.batch.sequences();
  DropoutPlan dropout{step.seed, step.step, 0.1, 0.2, 0.3};
  if (step.in_memory) {
    const auto streams = dropout_streams(place.config, step.seed, step.step);
    backend.upload(place.streams.data(), streams.data(), streams.size() * sizeof(DropoutStream));
    dropout = {0,   0,  0.1, 0.2,
               0.3, -1, 0,   reinterpret_cast<const DropoutStream*>(place.streams.data())};
  }
  if (step.range != place.range) {
    const std::vector<float> weights = random_weights(place.table, step.range);
    backend.upload(place.weights.data(), weights.data(), weights.size() * sizeof(float));
    place.range = step.range;
  }
  place.batch.upload(step.batch, step.scale);
  std::vector<int32_t> labels;
  for (uint32_t index : step.batch.indices) labels.push_back(int32_t(index % 2));
  auto* targets = reinterpret_cast<int32_t*>(place.labels.data());
  backend.upload(targets, labels.data(), labels.size() * sizeof(int32_t));
  backend.fill_zero(vector(place.gradients.data(), place.table.size()));
  Tensor losses = vector(place.losses.data(), sequences);
  StepOutcome out;
  const auto work = [&] {
    out.called = true;
    Tensor logits = place.encoder.forward(place.batch, place.weights.data(), &dropout, true);
    if (place.head.kind == HeadKind::sequence) {
      backend.cross_entropy(logits, targets, {}, 0.1f, place.batch.loss_scale(), losses, logits);
    } else {
      backend.span_cross_entropy(logits, place.batch.segments(), targets, targets,
                                 place.batch.loss_scale(), losses, logits);
    }
    place.encoder.backward(place.batch, place.weights.data(), place.gradients.data(), logits,
                           &dropout);
  };
  const int64_t key[] = {step.batch.tokens(), sequences, step.batch.max_length};
  step.replays ? backend.replay(key, work) : work();
  out.losses = download(backend, losses);
  out.gradients = place.gradients.values();
  return out;
}

}  // namespace

TEST_CASE("seed and step of dropout in the backend's memory give the same bits") {
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      INFO(named.name, ", ", head.outputs, " outputs");
      Place place(*named.backend, head);
      const PackedBatch batch = pack(random_sequences(place.config, {7, 2, 24, 13}));
      const StepOutcome expected = take(place, {0.3, batch, 5, 3, 0.5f, false, false});
      CHECK(take(place, {0.3, batch, 5, 3, 0.5f, true, false}) == expected);
      CHECK(!(take(place, {0.3, batch, 5, 4, 0.5f, true, false}) == expected));
      CHECK(!(take(place, {0.3, batch, 6, 3, 0.5f, true, false}) == expected));
    }
  }
}

TEST_CASE("sequences that fill up a micro-batch have no effect") {
  for (const NamedBackend& named : model_backends()) {
    for (Head head : kHeads) {
      INFO(named.name, ", ", head.outputs, " outputs");
      Place place(*named.backend, head);
      for (const std::vector<int>& lengths :
           {std::vector<int>{7, 2, 24, 13}, {2}, {3, 3, 3}, std::vector<int>(9, 5)}) {
        const PackedBatch batch = pack(random_sequences(place.config, lengths));
        const PackedBatch more = filled(batch);
        REQUIRE(more.fillers > 0);
        const StepOutcome expected = take(place, {0.3, batch, 5, 3, 0.5f, true, false});
        StepOutcome outcome = take(place, {0.3, more, 5, 3, 0.5f, true, false});
        const auto own = outcome.losses.begin() + batch.sequences();
        CHECK(std::all_of(own, outcome.losses.end(), [](float loss) { return loss == 0; }));
        outcome.losses.erase(own, outcome.losses.end());
        const double tolerance = std::max(5e-6, named.golden_tolerance);  // another order of sums
        CHECK(relative_error(outcome.losses, expected.losses) <= tolerance);
        CHECK(relative_error(outcome.gradients, expected.gradients) <= tolerance);
        // Rows of the word embedding without a token.
        Tensor words =
            place.table.view(outcome.gradients.data(), "bert.embeddings.word_embeddings.weight");
        for (int32_t id = 0; id < int32_t(words.rows); ++id) {
          if (std::count(batch.ids.begin(), batch.ids.end(), id) > 0) continue;
          const float* row = words.f32() + id * words.stride;
          CHECK(std::all_of(row, row + words.cols, [](float g) { return g == 0; }));
        }
      }
    }
  }
}

TEST_CASE("no micro-batch has a longer sequence than its memory is made for") {
  EncoderConfig config = small_config(1);
  for (int64_t most : {40, 512}) {
    config.max_position_embeddings = most;
    for (int64_t sequences : {1, 2, 7, 40, 512, 5000}) {
      for (int64_t tokens = sequences; tokens < 200'000; tokens += 1 + tokens / 40) {
        const int64_t longest = std::min(tokens - sequences + 1, most);
        const BatchShape shape = filled_shape({tokens, sequences, longest});
        REQUIRE(shape.max_length <= longest_sequence(config, shape.tokens));
      }
    }
  }
}

// The longest sequence's length is rounded up beyond the texts that these models take, and sizes
// the memory of what attention adds to scores by position.
TEST_CASE("a length that is rounded up beyond a model's positions has no effect") {
  for (const char* family : {"mpnet", "deberta-v3"}) {
    const auto path =
        shared_path("golden/family/" + std::string(family) + "/classification/config.json");
    EncoderConfig config = parse_config(read_text_file(path), path);
    config.hidden_size = 64;
    config.num_attention_heads = 2;
    config.embeddings.positions = true;
    config.max_position_embeddings = 40 + config.embeddings.first_position;
    for (const NamedBackend& named : model_backends()) {
      INFO(std::string(family), ", ", named.name);
      Place place(*named.backend, kHeads[0], config);
      const PackedBatch batch = pack(random_sequences(config, {36, 40, 25}));
      const PackedBatch more = filled(batch);
      REQUIRE(more.max_length > config.max_length());
      const StepOutcome expected = take(place, {0.3, batch, 5, 3, 0.5f, true, false});
      StepOutcome outcome = take(place, {0.3, more, 5, 3, 0.5f, true, false});
      outcome.losses.resize(expected.losses.size());
      const double tolerance = std::max(5e-6, named.golden_tolerance);  // another order of sums
      CHECK(relative_error(outcome.losses, expected.losses) <= tolerance);
      CHECK(relative_error(outcome.gradients, expected.gradients) <= tolerance);
    }
  }
}

// Other samples, lengths, numbers of sequences, dropout, scales and weights, in one shape. In the
// middle comes a larger micro-batch, for which scratch memory must not move.
TEST_CASE("replayed work has the bits of work that is called") {
  for (const BackendFactory& factory : backends_under_test()) {
    const auto backend = factory.make();
    if (!backend) continue;
    for (Head head : kHeads) {
      INFO(factory.name, ", ", head.outputs, " outputs");
      const std::vector<std::vector<int>> lengths = {
          {7, 2, 24, 13}, {23, 3, 3, 3, 17}, {9, 9, 24, 2, 2, 2}, {20, 24, 7},
          {24, 24},       {23, 3, 3, 20},    {24, 24, 24, 24},    {8, 8, 8, 6, 18}};
      std::vector<Step> steps;
      for (uint32_t i = 0; i < uint32_t(3 * lengths.size()); ++i) {
        auto sequences = random_sequences(config_of_two_heads(), lengths[i % lengths.size()]);
        for (Sequence& s : sequences) s.sample += i;
        const uint32_t four = i / 4;
        steps.push_back({0.2 + 0.02 * four, filled(pack(sequences)), 40 + i / 3, i,
                         1 / float(i + 1), false, false});
      }
      std::vector<StepOutcome> outcomes;
      Place place(*backend, head);
      std::set<std::tuple<int64_t, int64_t, int64_t>> shapes;
      int called = 0;
      for (Step step : steps) {
        step.replays = step.in_memory = true;
        outcomes.push_back(take(place, step));
        called += outcomes.back().called;
        shapes.insert({step.batch.tokens(), step.batch.sequences(), step.batch.max_length});
      }
      CHECK(shapes.size() == 3);
      // Called once, recorded once.
      if (backend->replays()) CHECK(called == 2 * int(shapes.size()));
      Place plain(*backend, head);
      for (size_t i = 0; i < steps.size(); ++i) CHECK(outcomes[i] == take(plain, steps[i]));
    }
  }
}

}  // namespace finetune::test
