// A step's passes over shards and micro-batches, by pipeline stages and by one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>

#include "core/numeric/philox.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "op_case.h"
#include "small_encoder.h"
#include "tasks/task.h"
#include "train/stage_passes.h"

namespace finetune {
namespace {

constexpr int64_t kSamples = 9, kShards = 3, kLayers = 4;
constexpr BatchSize kLargest{80, 9};

struct Data {
  TokenizedSamples samples;
  std::vector<int32_t> labels;

  explicit Data(int64_t vocabulary) {
    for (uint32_t i = 0; i < kSamples; ++i) {
      const int64_t length = 2 + int64_t(philox({1, 2}, {i, 0, 0, 0})[0] % 8);
      for (uint32_t t = 0; t < uint32_t(length); ++t) {
        samples.ids.push_back(int32_t(philox({1, 3}, {i, t, 0, 0})[0] % uint32_t(vocabulary)));
      }
      samples.offsets.push_back(int64_t(samples.ids.size()));
      samples.second.push_back(uint32_t(length));
      labels.push_back(int32_t(i % 2));
    }
  }
  TrainingArrays arrays(Head head) const {
    TrainingArrays arrays;
    arrays.kind = head.kind == HeadKind::token ? TaskKind::qa : TaskKind::classification;
    arrays.head = head;
    arrays.samples = samples;
    arrays.labels = labels;
    if (head.kind == HeadKind::token) arrays.ends = labels;
    return arrays;
  }
};

EncoderConfig config_of() {
  return test::encoder_of(
      {.words = 31, .hidden = 16, .layers = kLayers, .heads = 2, .inner = 24, .positions = 16});
}

struct Case {
  test::BackendFactory factory;
  Head head;
  MicroBatching micro_batches;
  int64_t batch = kSamples;  // samples; fewer than shards leave some empty
  bool recompute = false;
  int lowest = 0;
};

// One process: engine, objective and sums over all shards.
struct Process {
  std::unique_ptr<Communicator> comm = make_solo_communicator();
  EncoderConfig config = config_of();
  Engine engine;
  std::unique_ptr<Objective> objective;
  ZeroPartition partition;
  TouchedRows touched;
  std::unique_ptr<GradientReduce> sum;
  std::vector<Bucket> buckets;
  std::shared_ptr<void> losses;
  StagePasses passes;

  Process(const Case& c, const Data& data, const ModelPart& part, int64_t slots, StagePlan plan)
      : engine(c.factory.make(), config, c.head, *comm, part),
        objective(make_objective(data.arrays(c.head))),
        partition(engine.table(), 1, 1),
        touched(engine.backend(), partition.row_count()),
        sum(make_gradient_reduce(engine.backend(), *comm, partition, engine.table().size(), kShards,
                                 false, elements_of_chunks(engine.table()))),
        losses(engine.backend().allocate(kShards * sizeof(double))),
        passes(engine, *objective, *sum, buckets, kLargest.sequences,
               {c.micro_batches, kShards, c.lowest}, std::move(plan)) {
    engine.reserve(kLargest, {}, c.recompute, slots);
    engine.set_weights([&](float* arena) { initialize(engine.table(), 0.2, 1, arena); });
    objective->reserve(engine.backend(), kLargest.sequences);
  }

  // `count` samples from `first` on, wrapping around.
  void run(const Data& data, int64_t first, int64_t count) {
    const DropoutPlan dropout{5, 3, 0.1, 0.1, 0.1};
    std::vector<uint32_t> batch;
    for (int64_t i = 0; i < count; ++i) batch.push_back(uint32_t((first + i) % kSamples));
    if (word_embeddings(engine.table())) {
      touched.clear();
      touched.add(data.samples.ids);
      touched.complete();
    }
    passes.run({batch, &dropout, 0.25f, static_cast<double*>(losses.get())}, touched);
    sum->reduce_scatter(touched);
  }
  std::vector<float> gradients() {
    Backend& backend = engine.backend();
    std::vector<float> out(size_t(engine.table().size()));
    backend.download(out.data(), sum->sum(), out.size() * sizeof(float));
    // The user of a sum's rows must reset them to zero.
    if (const Parameter* words = word_embeddings(engine.table())) {
      backend.fill_zero(vector(sum->sum() + words->offset, words->size()));
    }
    return out;
  }
  std::vector<double> sums_of_losses() {
    std::vector<double> out(kShards);
    engine.backend().download(out.data(), losses.get(), out.size() * sizeof(double));
    return out;
  }
};

// Messages between threads of this process, one of which computes at a time.
class ThreadLinks final : public StageLinks {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable arrived;
    std::map<std::tuple<int, int, bool>, std::deque<std::vector<float>>> channels;
  };
  ThreadLinks(Shared& shared, int stage) : shared_(shared), stage_(stage) {}

  void send(const PipelineAction& action, Tensor from) override {
    const bool upwards = action.kind == PipelineAction::Kind::send_activation;
    std::vector<float> message(static_cast<size_t>(from.size()));
    backend->download(message.data(), from.data, message.size() * sizeof(float));
    shared_.channels[{stage_, action.peer, upwards}].push_back(std::move(message));
    shared_.arrived.notify_all();
  }
  void receive(const PipelineAction& action, Tensor into) override {
    const bool upwards = action.kind == PipelineAction::Kind::receive_activation;
    auto& channel = shared_.channels[{action.peer, stage_, upwards}];
    shared_.arrived.wait(*lock, [&] { return !channel.empty(); });
    REQUIRE(int64_t(channel.front().size()) == into.size());
    backend->upload(into.data, channel.front().data(), channel.front().size() * sizeof(float));
    channel.pop_front();
  }

  std::unique_lock<std::mutex>* lock = nullptr;  // held by the stage's thread
  Backend* backend = nullptr;                    // the stage's

 private:
  Shared& shared_;
  int stage_;
};

// One forward and one backward pass; `trains`: whether this stage, and the one below, go backward.
std::vector<PipelineAction> actions_of(int stage, int stages, int m, bool trains, bool below) {
  using enum PipelineAction::Kind;
  std::vector<PipelineAction> actions;
  const int slots = std::min(m, stages - stage);
  for (int i = 0; i < m + slots - 1; ++i) {
    if (i < m) {
      const int slot = i % slots;
      if (stage > 0) actions.push_back({receive_activation, i, 0, slot, stage - 1});
      actions.push_back({forward, i, 0, slot});
      if (stage + 1 < stages) actions.push_back({send_activation, i, 0, slot, stage + 1});
    }
    const int back = i - slots + 1;
    if (back < 0 || !trains) continue;
    if (stage + 1 < stages) {
      actions.push_back({receive_gradient, back, 0, back % slots, stage + 1});
    }
    actions.push_back({backward, back, 0, back % slots});
    if (below) actions.push_back({send_gradient, back, 0, back % slots, stage - 1});
  }
  return actions;
}

// Each stage has the whole model's gradients for its parameters, and each parameter is in one
// stage.
void compare(Process& whole, const std::vector<std::unique_ptr<Process>>& stages) {
  const std::vector<float> expected = whole.gradients();
  const int p = int(stages.size());
  size_t compared = 0;
  for (int s = 0; s < p; ++s) {
    const std::vector<float> own = stages[size_t(s)]->gradients();
    for (const Parameter& parameter : stages[size_t(s)]->engine.table().parameters()) {
      INFO("stage ", s, " ", parameter.name);
      const Parameter* there = whole.engine.table().find(parameter.name);
      REQUIRE(there != nullptr);
      REQUIRE(there->size() == parameter.size());
      const auto begin = own.begin() + parameter.offset;
      CHECK(std::equal(begin, begin + parameter.size(), expected.begin() + there->offset));
      ++compared;
    }
    const bool last = s + 1 == p;
    CHECK(stages[size_t(s)]->sums_of_losses() ==
          (last ? whole.sums_of_losses() : std::vector<double>(kShards, 0.0)));
  }
  CHECK(compared == whole.engine.table().parameters().size());
}

// A stage's part, actions and needs.
struct Stage {
  ModelPart part;
  std::function<std::vector<PipelineAction>(int64_t)> actions;
  int64_t slots = 1;
};

std::vector<Stage> three_stages(const Case& c) {
  const std::vector<IndexRange> layers = {{0, 1}, {1, 2}, {2, kLayers}};
  const int p = int(layers.size());
  std::vector<Stage> stages;
  for (int s = 0; s < p; ++s) {
    Stage& stage = stages.emplace_back();
    stage.part.chunks = {layers[size_t(s)]};
    stage.part.embeddings = s == 0;
    stage.part.head = s + 1 == p;
    const bool trains = stage.part.head || c.lowest <= layers[size_t(s)].end;
    const bool below = s > 0 && c.lowest <= layers[size_t(s)].begin;
    stage.actions = [=](int64_t m) { return actions_of(s, p, int(m), trains, below); };
    stage.slots = p - s;
  }
  return stages;
}

// Interleaved: one chunk goes backward over a shard while another is at the next shard.
std::vector<Stage> two_stages_of_two_chunks(const Case& c) {
  PipelineShape shape{PipelineKind::interleaved, 2, 2};
  shape.lowest_block = std::clamp(c.lowest - 1, 0, shape.blocks() - 1);  // each has one layer
  std::vector<Stage> stages;
  for (int s = 0; s < shape.stages; ++s) {
    Stage& stage = stages.emplace_back();
    for (int64_t block : {s, s + 2}) stage.part.chunks.push_back({block, block + 1});
    stage.part.embeddings = s == 0;
    stage.part.head = s + 1 == shape.stages;
    stage.actions = [=](int64_t m) mutable {
      shape.micro_batches = int(m);
      return pipeline_actions(shape, s);
    };
    shape.micro_batches = 4 * int(kSamples);
    stage.slots = most_slots(shape, s);
  }
  return stages;
}

void check_stages(const Case& c, const std::vector<Stage>& layout) {
  const Data data(config_of().vocab_size);
  Process whole(c, data, ModelPart::whole(config_of()), 1, {});
  ThreadLinks::Shared shared;
  std::vector<std::unique_ptr<ThreadLinks>> links;
  std::vector<std::unique_ptr<Process>> stages;
  const int p = int(layout.size());
  for (int s = 0; s < p; ++s) {
    const Stage& stage = layout[size_t(s)];
    links.push_back(std::make_unique<ThreadLinks>(shared, s));
    StagePlan plan{stage.actions, links.back().get()};
    stages.push_back(std::make_unique<Process>(c, data, stage.part, stage.slots, std::move(plan)));
    links.back()->backend = &stages.back()->engine.backend();
  }
  // A device records repeated work and replays it from then on.
  const int64_t steps = whole.engine.backend().replays() ? 3 : 2;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<std::thread> threads;
    for (int s = 0; s < p; ++s) {
      threads.emplace_back([&, s] {
        std::unique_lock<std::mutex> lock(shared.mutex);
        links[size_t(s)]->lock = &lock;
        stages[size_t(s)]->run(data, step, c.batch);
      });
    }
    for (std::thread& thread : threads) thread.join();
    whole.run(data, step, c.batch);
    compare(whole, stages);
  }
}

void check_layouts(const Case& c) {
  check_stages(c, three_stages(c));
  check_stages(c, two_stages_of_two_chunks(c));
}

}  // namespace

TEST_CASE("stages sum the gradients of one process, over shards and micro-batches") {
  for (const test::BackendFactory& factory : test::backends_under_test()) {
    if (!factory.make()) continue;
    const bool slow = factory.device == test::Device::gpu;  // kernels on the host
    for (Head head : {Head{HeadKind::sequence, 2}, Head{HeadKind::token, 2}}) {
      INFO(factory.name, ", ", int(head.kind));
      for (bool recompute : {false, true}) {
        for (int lowest : {0, 2, int(kLayers) + 1}) {
          if (slow && (recompute != (lowest == 2) || (head.kind == HeadKind::token && lowest > 2)))
            continue;
          INFO("lowest ", lowest, recompute ? " recompute" : "");
          check_layouts({factory, head, MicroBatching::into(2), kSamples, recompute, lowest});
        }
      }
      check_layouts({factory, head, MicroBatching::of_tokens(7)});
      if (slow && head.kind == HeadKind::token) continue;  // the order does not depend on the head
      check_layouts({factory, head, MicroBatching::into(1), kSamples, false, 3});  // odd rounds
      check_layouts({factory, head, MicroBatching::into(1), 2});                   // an empty shard
      check_layouts({factory, head, MicroBatching::into(4), 1});  // fewer micro-batches than stages
    }
  }
}

TEST_CASE("passes that are one unit have the bits of passes apart") {
  for (const test::BackendFactory& factory : test::backends_under_test()) {
    if (!factory.make()) continue;
    INFO(factory.name);
    const Case c{factory, {HeadKind::sequence, 2}, MicroBatching::into(2)};
    const Data data(config_of().vocab_size);
    Process process(c, data, ModelPart::whole(config_of()), 1, {});
    // All forward, then all backward, in several slots.
    StagePlan plan;
    plan.actions = [](int64_t m) {
      using enum PipelineAction::Kind;
      std::vector<PipelineAction> actions;
      for (int i = 0; i < int(m); ++i) actions.push_back({forward, i, 0, i});
      for (int i = 0; i < int(m); ++i) actions.push_back({backward, i, 0, i});
      return actions;
    };
    Process apart(c, data, ModelPart::whole(config_of()), 2 * kShards, std::move(plan));
    for (int64_t step = 0; step < 4; ++step) {
      process.run(data, step, kSamples);
      apart.run(data, step, kSamples);
      const std::vector<float> gradients = process.gradients();
      const std::vector<double> losses = process.sums_of_losses();
      CHECK(*std::min_element(losses.begin(), losses.end()) > 0);
      CHECK(std::any_of(gradients.begin(), gradients.end(), [](float g) { return g != 0; }));
      CHECK(apart.gradients() == gradients);
      CHECK(apart.sums_of_losses() == losses);
    }
  }
}

}  // namespace finetune
