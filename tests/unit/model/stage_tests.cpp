// Stages of a pipeline compute the bits of the whole model, in any order of their micro-batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "fixture.h"
#include "model/activations.h"
#include "op_case.h"

namespace finetune::test {
namespace {

constexpr int64_t kLayers = 4, kMaxTokens = 40, kMaxSequences = 4;
const std::vector<std::vector<int>> kMicroBatches = {{7, 1, 24}, {2}, {13, 9, 5, 1}, {24, 3}};

struct Case {
  Backend& backend;
  Head head;
  bool recompute = false;
  int lowest = 0;
  EncoderConfig config = small_config(kLayers);
  ParameterTable table{config, head};
  Arena weights{backend, random_weights(table, 0.3)};
  std::vector<PackedBatch> batches;

  Case(Backend& b, Head h, bool recomputes, int lowest_layer)
      : backend(b), head(h), recompute(recomputes), lowest(lowest_layer) {
    uint32_t first = 0;
    for (const std::vector<int>& lengths : kMicroBatches) {
      std::vector<Sequence> sequences = random_sequences(config, lengths);
      for (Sequence& sequence : sequences) sequence.sample = first++;
      batches.push_back(pack(sequences));
    }
  }

  // The losses of a micro-batch; the gradient replaces the logits.
  std::vector<float> loss(const DeviceBatch& device, const PackedBatch& batch, Tensor logits) {
    std::vector<int32_t> labels;
    for (uint32_t index : batch.indices) labels.push_back(int32_t(index % 2));
    Arena targets(backend, int64_t(labels.size())), losses(backend, batch.sequences());
    auto* place = reinterpret_cast<int32_t*>(targets.data());
    backend.upload(place, labels.data(), labels.size() * sizeof(int32_t));
    const Tensor out = vector(losses.data(), batch.sequences());
    if (head.kind == HeadKind::sequence) {
      backend.cross_entropy(logits, place, {}, 0.1f, device.loss_scale(), out, logits);
    } else {
      for (size_t i = 0; i < labels.size(); ++i) labels[i] = 0;  // a sequence may have one token
      backend.upload(place, labels.data(), labels.size() * sizeof(int32_t));
      backend.span_cross_entropy(logits, device.segments(), place, place, device.loss_scale(), out,
                                 logits);
    }
    return losses.values();
  }
};

struct Outcome {
  std::vector<float> losses, gradients;
};

Outcome whole_model(Case& c) {
  Encoder encoder(c.backend, c.config, c.table);
  encoder.reserve(kMaxTokens, kMaxSequences, true, c.recompute);
  DeviceBatch device(c.backend, kMaxTokens, kMaxSequences);
  Arena gradients(c.backend, c.table.size());
  Outcome out;
  for (const PackedBatch& batch : c.batches) {
    device.upload(batch, 0.25f);
    const Tensor logits = encoder.forward(device, c.weights.data(), &kDropout, true);
    for (float loss : c.loss(device, batch, logits)) out.losses.push_back(loss);
    encoder.backward(device, c.weights.data(), gradients.data(), logits, &kDropout, c.lowest,
                     &batch != &c.batches.front());
  }
  out.gradients = gradients.values();
  return out;
}

struct Action {
  bool forward = true;
  int micro = 0;
  int64_t chunk = 0;
  int64_t slot = 0;
};

// A stage's part and its order of work.
struct StagePlan {
  ModelPart part;
  int64_t slots = 1;
  std::deque<Action> actions;
};

// `cuts`: layers of each chunk of the model, from the bottom; chunk c is on stage c % stages.
std::vector<StagePlan> stages_of(const std::vector<int64_t>& cuts, int64_t stages) {
  std::vector<StagePlan> plans(static_cast<size_t>(stages));
  int64_t begin = 0;
  for (size_t c = 0; c < cuts.size(); ++c) {
    plans[c % size_t(stages)].part.chunks.push_back({begin, begin + cuts[c]});
    begin += cuts[c];
  }
  for (int64_t s = 0; s < stages; ++s) {
    plans[size_t(s)].part.embeddings = s == 0;
    plans[size_t(s)].part.head = s + 1 == stages;
  }
  return plans;
}

std::vector<StagePlan> one_forward_one_backward(const std::vector<int64_t>& cuts) {
  const int p = int(cuts.size()), m = int(kMicroBatches.size());
  std::vector<StagePlan> plans = stages_of(cuts, p);
  for (int s = 0; s < p; ++s) {
    StagePlan& plan = plans[size_t(s)];
    plan.slots = std::min(m, p - s);
    for (int i = 0; i < m + plan.slots - 1; ++i) {
      if (i < m) plan.actions.push_back({true, i, 0, i % plan.slots});
      const int back = i - int(plan.slots) + 1;
      if (back >= 0) plan.actions.push_back({false, back, 0, back % plan.slots});
    }
  }
  return plans;
}

// All forward passes, then all backward passes, both in ascending order.
std::vector<StagePlan> all_forward_first(const std::vector<int64_t>& cuts, int64_t stages) {
  const int m = int(kMicroBatches.size());
  std::vector<StagePlan> plans = stages_of(cuts, stages);
  for (StagePlan& plan : plans) {
    const int64_t chunks = int64_t(plan.part.chunks.size());
    plan.slots = m * chunks;
    for (int64_t c = 0; c < chunks; ++c) {
      for (int i = 0; i < m; ++i) plan.actions.push_back({true, i, c, c * m + i});
    }
    for (int64_t c = chunks; c-- > 0;) {
      for (int i = 0; i < m; ++i) plan.actions.push_back({false, i, c, c * m + i});
    }
  }
  return plans;
}

struct Stage {
  StagePlan plan;
  Encoder encoder;
  std::vector<DeviceBatch> batches;
  Arena gradients;

  Stage(Case& c, const StagePlan& p)
      : plan(p),
        encoder(c.backend, c.config, c.table, p.part),
        gradients(c.backend, c.table.size()) {
    encoder.reserve(kMaxTokens, kMaxSequences, true, c.recompute, p.slots);
    for (int64_t i = 0; i < p.slots; ++i) {
      batches.emplace_back(c.backend, kMaxTokens, kMaxSequences);
    }
  }
};

// Runs all stages in this process; messages between them go through host memory.
class Pipeline {
 public:
  Pipeline(Case& c, const std::vector<StagePlan>& plans) : case_(c) {
    for (const StagePlan& plan : plans) stages_.push_back(std::make_unique<Stage>(c, plan));
  }

  Outcome run() {
    losses_.resize(kMicroBatches.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < stages_.size(); ++s) {
        std::deque<Action>& actions = stages_[s]->plan.actions;
        while (!actions.empty() && take(s, actions.front())) {
          actions.pop_front();
          moved = true;
        }
      }
    }
    Outcome out;
    for (const auto& losses : losses_) {
      out.losses.insert(out.losses.end(), losses.begin(), losses.end());
    }
    out.gradients.resize(size_t(case_.table.size()));
    for (const auto& stage : stages_) {
      CHECK(stage->plan.actions.empty());  // otherwise the order deadlocks
      add_own(*stage, out.gradients);
    }
    return out;
  }

 private:
  // Boundary between two chunks, from the bottom; micro-batch; direction.
  using Message = std::tuple<int64_t, int, bool>;

  bool receive(const Message& message, Tensor into) {
    const auto found = messages_.find(message);
    if (found == messages_.end()) return false;
    REQUIRE(int64_t(found->second.size()) == into.size());
    case_.backend.upload(into.data, found->second.data(), found->second.size() * sizeof(float));
    messages_.erase(found);
    return true;
  }

  bool take(size_t s, const Action& action) {
    Stage& stage = *stages_[s];
    Encoder& encoder = stage.encoder;
    DeviceBatch& device = stage.batches[size_t(action.slot)];
    const PackedBatch& batch = case_.batches[size_t(action.micro)];
    const ChunkSlot at{action.chunk, action.slot};
    const int64_t below = action.chunk * int64_t(stages_.size()) + int64_t(s), above = below + 1;
    float* weights = case_.weights.data();
    if (action.forward) {
      device.upload(batch, 0.25f);
      if (!encoder.has_embeddings(at.chunk) &&
          !receive({below, action.micro, true}, encoder.input_of(at, device))) {
        return false;
      }
      encoder.forward(at, device, weights, &kDropout);
      const Tensor output = encoder.output_of(at, device);
      if (encoder.has_head(at.chunk)) {
        losses_[size_t(action.micro)] = case_.loss(device, batch, output);
      } else {
        messages_[{above, action.micro, true}] = download(case_.backend, output);
      }
      return true;
    }
    if (!encoder.has_backward(at.chunk, case_.lowest)) return true;
    Tensor dlogits;
    if (encoder.has_head(at.chunk)) {
      dlogits = encoder.output_of(at, device);
    } else if (!receive({above, action.micro, false}, encoder.gradient_of_output(at, device))) {
      return false;
    }
    encoder.backward(at, device, weights, stage.gradients.data(), dlogits, &kDropout, case_.lowest,
                     action.micro > 0);
    if (encoder.passes_gradient_on(at.chunk, case_.lowest)) {
      messages_[{below, action.micro, false}] =
          download(case_.backend, encoder.gradient_of_input(at, device));
    }
    return true;
  }

  // A stage's gradients are those of its own parameters.
  void add_own(const Stage& stage, std::vector<float>& sum) {
    const ModelPart& part = stage.plan.part;
    const std::vector<float> own = stage.gradients.values();
    for (const Parameter& p : case_.table.parameters()) {
      const bool has = p.layer == 0        ? part.embeddings
                       : p.layer > kLayers ? part.head
                                           : part.holds_layer(p.layer - 1);
      const auto begin = own.begin() + p.offset;
      if (has) {
        std::copy_n(begin, p.size(), sum.begin() + p.offset);
      } else {
        CHECK(std::all_of(begin, begin + p.size(), [](float g) { return g == 0; }));
      }
    }
  }

  Case& case_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::map<Message, std::vector<float>> messages_;
  std::vector<std::vector<float>> losses_;
};

template <typename Body>
void for_each_case(Body&& body) {
  std::vector<std::pair<std::string, std::unique_ptr<Backend>>> backends;
  backends.emplace_back("reference", make_reference_backend());
  for (const BackendFactory& factory : backends_under_test()) {
    if (auto backend = factory.make()) backends.emplace_back(factory.name, std::move(backend));
  }
  for (const auto& named : backends) {
    Backend* const backend = named.second.get();
    for (Head head : kHeads) {
      for (bool recompute : {false, true}) {
        // Kernels on the host are slow: each of both once.
        const std::vector<int> all = {0, 1, 3, 4, int(kLayers) + 1}, some = {recompute ? 3 : 0};
        for (int lowest : backend->uses_host_memory() ? all : some) {
          INFO(named.first, ", ", text(head), " head, lowest ", lowest,
               recompute ? ", recompute" : "");
          Case c(*backend, head, recompute, lowest);
          body(c);
        }
      }
    }
  }
}

void check_equal(Case& c, const Outcome& expected, const std::vector<StagePlan>& plans) {
  const Outcome got = Pipeline(c, plans).run();
  CHECK(got.losses == expected.losses);
  CHECK(got.gradients == expected.gradients);
}

}  // namespace

TEST_CASE("stages have the bits of the whole model, in every order of micro-batches") {
  for_each_case([](Case& c) {
    const Outcome expected = whole_model(c);
    check_equal(c, expected, one_forward_one_backward({kLayers}));
    check_equal(c, expected, one_forward_one_backward({2, 2}));
    check_equal(c, expected, one_forward_one_backward({1, 2, 1}));
    check_equal(c, expected, one_forward_one_backward({1, 1, 1, 1}));
    check_equal(c, expected, all_forward_first({3, 1}, 2));
    check_equal(c, expected, all_forward_first({1, 1, 1, 1}, 2));
  });
}

TEST_CASE("stages give the whole model's inference results") {
  for_each_case([](Case& c) {
    if (c.lowest > 0 || c.recompute) return;
    Encoder whole(c.backend, c.config, c.table);
    whole.reserve(kMaxTokens, kMaxSequences, false);
    DeviceBatch device(c.backend, kMaxTokens, kMaxSequences);
    const ChunkSlot at{0, ChunkSlot::kInference};
    std::vector<std::unique_ptr<Encoder>> stages;
    for (const StagePlan& plan : stages_of({1, 2, 1}, 3)) {
      stages.push_back(std::make_unique<Encoder>(c.backend, c.config, c.table, plan.part));
      stages.back()->reserve(kMaxTokens, kMaxSequences, false);
    }
    for (const PackedBatch& batch : c.batches) {
      device.upload(batch);
      const std::vector<float> expected =
          download(c.backend, whole.forward(device, c.weights.data(), nullptr, false));
      std::vector<float> state;
      for (auto& stage : stages) {
        if (!state.empty()) {
          c.backend.upload(stage->input_of(at, device).data, state.data(),
                           state.size() * sizeof(float));
        }
        stage->forward(at, device, c.weights.data(), nullptr);
        state = download(c.backend, stage->output_of(at, device));
      }
      CHECK(state == expected);
    }
  });
}

// Bytes of a token in a layer, and of what all share (H hidden, I intermediate): kept 16 H + 4 (4 H
// + I), or in bf16 20 H + 2 (4 H + I); working 4 H + e (2 H + max(I, 3 H)), or with a second stream
// in bf16 4 H + 2 (6 H + I), and 4 H of what goes on to the next stage.
TEST_CASE("a middle stage has the memory of the formula") {
  EncoderConfig config = small_config(kLayers);
  config.hidden_size = 64;
  config.num_attention_heads = 4;
  config.intermediate_size = 256;
  const int64_t t = 1024, b = 16, h = 64, inner = 256, layers = 2;
  const ModelChunk middle{{1, 1 + layers}, false, false};
  for (const ActivationForm form : {ActivationForm(DType::f32), ActivationForm(DType::bf16),
                                    ActivationForm(DType::bf16, false, true)}) {
    const DType type = form.type;
    for (bool recompute : {false, true}) {
      INFO(int(type), " second stream ", form.second_stream, " recompute ", recompute);
      const ActivationPlan plan =
          ActivationPlan::training(config, kHeads[0], middle, form, t, b, recompute);
      const int64_t e = type == DType::f32 ? 4 : 2;
      const int64_t results = (type == DType::f32 ? 16 : 20) * h + e * (4 * h + inner);
      const int64_t small = 4 * 4 + 16;  // sums of attention's rows, means and deviations
      // The first layer's input is not kept in bf16; with recompute none is.
      const int64_t rounded = type == DType::bf16 ? 2 * h : 0;
      const int64_t working = 8 * h + e * ((form.second_stream ? 6 : 2) * h + inner);
      if (recompute) {
        CHECK(plan.kept * 4 == t * layers * 4 * h);
        CHECK(plan.working * 4 == t * (results + small - 4 * h - rounded + working));
      } else {
        CHECK(plan.kept * 4 == t * (layers * (results + small) - rounded));
        CHECK(plan.working * 4 == t * working);
      }
    }
  }
}

TEST_CASE("stages and slots need memory for the values that they keep") {
  auto backend = make_reference_backend();
  const EncoderConfig config = small_config(kLayers);
  const ParameterTable table(config, kHeads[1]);
  for (bool recompute : {false, true}) {
    auto bytes = [&](const ModelPart& part, int64_t slots) {
      return Encoder(*backend, config, table, part).activation_bytes(32, 4, true, recompute, slots);
    };
    const std::vector<StagePlan> halves = stages_of({2, 2}, 2);
    const ModelPart whole = ModelPart::whole(config);
    CHECK(bytes(whole, 3) - bytes(whole, 2) == bytes(whole, 2) - bytes(whole, 1));
    CHECK(bytes(whole, 2) > bytes(whole, 1));
    CHECK(bytes(halves[0].part, 1) < bytes(whole, 1));
    CHECK(bytes(halves[1].part, 1) < bytes(whole, 1));
    const auto plan = [&](int64_t slot_at, int64_t working_at) {
      return ActivationPlan::training(config, kHeads[1], ModelChunk::whole(config), DType::f32, 32,
                                      4, recompute, slot_at, working_at);
    };
    CHECK((plan(0, kAbsent).kept + plan(0, kAbsent).working) * 4 == bytes(whole, 1));
    // The second of three slots, and what they share.
    const int64_t kept = plan(0, kAbsent).kept;
    const ActivationPlan second = plan(kept, 3 * kept);
    CHECK(second.embedding_sum == kept);
    CHECK(second.gradient >= 3 * kept);
    CHECK(second.floats * 4 == bytes(whole, 3));
  }
}

}  // namespace finetune::test
