// A step's passes over shards and micro-batches: by the stages of a pipeline, and by one process.
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
#include "tasks/task.h"
#include "train/stage_passes.h"

namespace finetune {
namespace {

constexpr int64_t kSamples = 9, kShards = 3, kLayers = 3;
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

BertConfig config_of() {
  BertConfig config;
  config.vocab_size = 31;
  config.hidden_size = 16;
  config.num_hidden_layers = kLayers;
  config.num_attention_heads = 2;
  config.intermediate_size = 24;
  config.max_position_embeddings = 16;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.1;
  return config;
}

struct Case {
  Head head;
  std::string precision = "fp32";
  MicroBatching micro_batches;
  int64_t batch = kSamples;  // samples; with fewer than shards some are empty
  bool recompute = false;
  int lowest = 0;
};

// A process: engine, objective and sums over all shards.
struct Process {
  std::unique_ptr<Communicator> comm = make_solo_communicator();
  BertConfig config = config_of();
  Engine engine;
  std::unique_ptr<Objective> objective;
  ZeroPartition partition;
  NeededRows needed;
  std::unique_ptr<GradientReduce> sum;
  std::vector<Bucket> buckets;
  std::shared_ptr<void> losses;
  StagePasses passes;

  Process(const Case& c, const Data& data, const ModelPart& part, int64_t slots, StagePlan plan)
      : engine(make_backend("cpu", 1, c.precision), config, c.head, *comm, part),
        objective(make_objective(data.arrays(c.head))),
        partition(engine.table(), 1, 1),
        needed(engine.backend(), config.vocab_size),
        sum(make_gradient_reduce(engine.backend(), *comm, partition, engine.table().size(), kShards,
                                 false)),
        losses(engine.backend().allocate(kShards * sizeof(double))),
        passes(engine, *objective, *sum, buckets, partition.dense_elements(), kLargest.sequences,
               {c.micro_batches, kShards, c.lowest}, std::move(plan)) {
    engine.reserve(kLargest, {}, c.recompute, slots);
    engine.set_weights([&](float* arena) { initialize(engine.table(), 0.2, 1, arena); });
    objective->reserve(engine.backend(), kLargest.sequences);
  }

  void run(const Data& data, int64_t count) {
    const DropoutPlan dropout{5, 3, 0.1, 0.1, 0.1};
    std::vector<uint32_t> batch(static_cast<size_t>(count));
    std::iota(batch.begin(), batch.end(), 0u);
    needed.clear();
    needed.add(data.samples.ids);
    needed.complete();
    passes.run({batch, &dropout, 0.25f, static_cast<double*>(losses.get())}, needed);
    sum->reduce_scatter(needed);
  }
  std::vector<float> gradients() {
    std::vector<float> out(size_t(engine.table().size()));
    engine.backend().download(out.data(), sum->sum(), out.size() * sizeof(float));
    return out;
  }
  std::vector<double> sums_of_losses() {
    const auto* begin = static_cast<const double*>(losses.get());
    return {begin, begin + kShards};
  }
};

// Messages between threads of this process, of which one computes at a time.
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
    shared_.channels[{stage_, action.peer, upwards}].emplace_back(from.f32(),
                                                                  from.f32() + from.size());
    shared_.arrived.notify_all();
  }
  void receive(const PipelineAction& action, Tensor into) override {
    const bool upwards = action.kind == PipelineAction::Kind::receive_activation;
    auto& channel = shared_.channels[{action.peer, stage_, upwards}];
    shared_.arrived.wait(*lock, [&] { return !channel.empty(); });
    REQUIRE(int64_t(channel.front().size()) == into.size());
    std::copy(channel.front().begin(), channel.front().end(), into.f32());
    channel.pop_front();
  }

  std::unique_lock<std::mutex>* lock = nullptr;  // held by the stage's thread

 private:
  Shared& shared_;
  int stage_;
};

// One forward, one backward; `trains`: whether this stage, and the one below it, go backward.
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

void check_stages(const Case& c) {
  const Data data(config_of().vocab_size);
  Process whole(c, data, ModelPart::whole(config_of()), 1, {});
  whole.run(data, c.batch);

  ThreadLinks::Shared shared;
  std::vector<std::unique_ptr<ThreadLinks>> links;
  std::vector<std::unique_ptr<Process>> stages;
  const std::vector<IndexRange> layers = {{0, 1}, {1, 2}, {2, 3}};
  const int p = int(layers.size());
  for (int s = 0; s < p; ++s) {
    ModelPart part;
    part.chunks = {layers[size_t(s)]};
    part.embeddings = s == 0;
    part.head = s + 1 == p;
    const bool trains = part.head || c.lowest <= layers[size_t(s)].end;
    const bool below = s > 0 && c.lowest <= layers[size_t(s)].begin;
    links.push_back(std::make_unique<ThreadLinks>(shared, s));
    StagePlan plan{[=](int64_t m) { return actions_of(s, p, int(m), trains, below); },
                   links.back().get()};
    stages.push_back(std::make_unique<Process>(c, data, part, p - s, std::move(plan)));
  }
  std::vector<std::thread> threads;
  for (int s = 0; s < p; ++s) {
    threads.emplace_back([&, s] {
      std::unique_lock<std::mutex> lock(shared.mutex);
      links[size_t(s)]->lock = &lock;
      stages[size_t(s)]->run(data, c.batch);
    });
  }
  for (std::thread& thread : threads) thread.join();

  const std::vector<float> expected = whole.gradients();
  for (int s = 0; s < p; ++s) {
    const std::vector<float> own = stages[size_t(s)]->gradients();
    for (const Parameter& parameter : whole.engine.table().parameters()) {
      const int64_t of = std::clamp<int64_t>(parameter.layer - 1, 0, kLayers - 1);
      INFO("stage ", s, " ", parameter.name);
      const auto begin = own.begin() + parameter.offset, end = begin + parameter.size();
      if (of == s) {
        CHECK(std::equal(begin, end, expected.begin() + parameter.offset));
      } else {
        CHECK(std::all_of(begin, end, [](float g) { return g == 0; }));
      }
    }
    const bool last = s + 1 == p;
    CHECK(stages[size_t(s)]->sums_of_losses() ==
          (last ? whole.sums_of_losses() : std::vector<double>(kShards, 0.0)));
  }
}

}  // namespace

TEST_CASE("stages sum the gradients of one process, over shards and micro-batches") {
  for (Head head : {Head{HeadKind::sequence, 2}, Head{HeadKind::token, 2}}) {
    for (const char* precision : {"fp32", "bf16"}) {
      for (bool recompute : {false, true}) {
        for (int lowest : {0, 2, int(kLayers) + 1}) {
          INFO(head.outputs, precision, recompute ? " recompute" : "", " lowest ", lowest);
          check_stages({head, precision, MicroBatching::into(2), kSamples, recompute, lowest});
        }
      }
    }
    check_stages({head, "fp32", MicroBatching::of_tokens(7)});
    check_stages({head, "fp32", MicroBatching::into(1), 2});  // an empty shard
    check_stages({head, "fp32", MicroBatching::into(4), 1});  // fewer micro-batches than stages
  }
}

TEST_CASE("one process has the bits of a step whose shards are computed one by one") {
  const Case c{{HeadKind::sequence, 2}, "fp32", MicroBatching::into(2)};
  const Data data(config_of().vocab_size);
  Process process(c, data, ModelPart::whole(config_of()), 1, {});
  process.run(data, kSamples);
  const std::vector<float> first = process.gradients();
  const std::vector<double> losses = process.sums_of_losses();
  CHECK(*std::min_element(losses.begin(), losses.end()) > 0);
  CHECK(std::any_of(first.begin(), first.end(), [](float g) { return g != 0; }));
  // Several slots, and passes that are not one unit: all forward, then all backward.
  StagePlan plan;
  plan.actions = [](int64_t m) {
    std::vector<PipelineAction> actions;
    for (int i = 0; i < int(m); ++i) actions.push_back({PipelineAction::Kind::forward, i, 0, i});
    for (int i = 0; i < int(m); ++i) actions.push_back({PipelineAction::Kind::backward, i, 0, i});
    return actions;
  };
  Process other(c, data, ModelPart::whole(config_of()), 2 * kShards, std::move(plan));
  other.run(data, kSamples);
  CHECK(other.gradients() == first);
  CHECK(other.sums_of_losses() == losses);
}

}  // namespace finetune
