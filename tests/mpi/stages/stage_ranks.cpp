// One process of a run whose replicas are in stages, for stage_inference_test.py: `SCENARIO`.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "comm/agreement.h"
#include "core/numeric/philox.h"
#include "distributed/layout/stage_split.h"
#include "inference/batch_dispatch.h"
#include "model/encoder_layer.h"
#include "ops/cpu/cpu_backend.h"

namespace {

using namespace finetune;

constexpr int64_t kLayers = 6, kVocabulary = 50, kLongest = 16, kMicroBatch = 40;

void require(bool condition, const std::string& what) {
  if (!condition) throw internal_error("not so: ", what);
}

// 64 columns and two heads: whole layers are computed where the processor can.
EncoderConfig stage_config() {
  EncoderConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 64;
  config.num_hidden_layers = kLayers;
  config.num_attention_heads = 2;
  config.intermediate_size = 128;
  config.max_position_embeddings = kLongest;
  return config;
}

// A device whose memory is reachable only by upload and download.
class Device final : public CpuBackend {
 public:
  Device() : CpuBackend(DType::f32) {}
  bool uses_host_memory() const override { return false; }
};

enum class Kind { f32, bf16, device };

std::unique_ptr<Backend> backend_of(Kind kind) {
  if (kind == Kind::device) return std::make_unique<Device>();
  return make_cpu_backend(kind == Kind::bf16 ? DType::bf16 : DType::f32);
}

SampleSet samples_of(int64_t count) {
  SampleSet set;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = 2 + philox({1, 9}, {1, uint32_t(i), 0, 0})[0] % (kLongest - 1);
    for (int64_t t = 0; t < length; ++t) {
      const uint32_t drawn = philox({1, 9}, {2, uint32_t(i), uint32_t(t), 0})[0];
      set.samples.ids.push_back(int32_t(drawn % kVocabulary));
    }
    set.samples.offsets.push_back(int64_t(set.samples.ids.size()));
    set.samples.second.push_back(uint32_t(length - 1));
  }
  return set;
}

// All logits, in the order in which they came.
class Logits final : public Evaluator {
 public:
  // `set` must outlive this.
  Logits(Head head, const SampleSet& set) : head_(head), chunks_(set) {}
  Head head() const override { return head_; }
  int64_t max_length() const override { return kLongest; }
  std::optional<SampleChunk> next() override { return chunks_.next(); }
  double share() const override { return chunks_.share(); }
  int64_t rows() const override { return chunks_.rows_given(); }
  void add(const PackedBatch& batch, const float* logits) override {
    const int64_t rows = head_.kind == HeadKind::token ? batch.tokens() : batch.sequences();
    values.insert(values.end(), logits, logits + rows * head_.outputs);
    ++batches;
  }
  Metrics metrics() override { return {}; }
  void write_files(const std::filesystem::path&) override {}

  std::vector<float> values;
  int64_t batches = 0;

 private:
  Head head_;
  SampleSetChunks chunks_;
};

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void fill(Engine& engine) {
  engine.set_weights([&](float* arena) {
    for (const Parameter& parameter : engine.table().parameters()) {
      initialize(engine.table(), parameter, 0.3, 3, arena);
    }
  });
}

// The whole model in one process.
std::vector<float> expected_of(Kind kind, Head head, const SampleSet& set) {
  const std::unique_ptr<Communicator> alone = make_solo_communicator();
  Engine engine(backend_of(kind), stage_config(), head, *alone);
  fill(engine);
  engine.reserve({}, {kMicroBatch, kMicroBatch});
  Logits logits(head, set);
  BatchDispatcher(engine, *alone).evaluate(logits, kMicroBatch, [](double) { return true; });
  return logits.values;
}

struct Division {
  int pp = 1, chunks = 1;
  Placement placement = kCluster;
};

// A replica's model in stages, and the evaluation through them.
struct Staged {
  LayoutGroups groups;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ReplicaStages> stages;

  Staged(Communicator& comm, const Division& division, Kind kind, Head head)
      : groups(comm, Layout(comm.size(), division.pp, 1, division.placement)) {
    const EncoderConfig config = stage_config();
    const StageSplit split =
        split_stages("auto", division.pp, division.chunks, layer_costs(config, head, kLongest));
    engine = std::make_unique<Engine>(backend_of(kind), config, head, groups.data(),
                                      part_of(split, groups.layout(), 1, comm.rank()));
    const bool shared = engine->backend().uses_host_memory();
    if (!shared || groups.data().local_rank() == 0) fill(*engine);
    comm.barrier();
    engine->reserve({}, {kMicroBatch, kMicroBatch});
    stages = std::make_unique<ReplicaStages>(*engine, groups);
  }
};

void check(Communicator& comm, const Division& division, Kind kind, Head head) {
  Staged staged(comm, division, kind, head);
  for (int64_t count : {0, 1, 61}) {
    BatchDispatcher dispatcher(*staged.engine, *staged.stages);
    if (comm.rank() != 0) {
      dispatcher.serve();
      continue;
    }
    const SampleSet set = samples_of(count);
    Logits logits(head, set);
    dispatcher.evaluate(logits, kMicroBatch, [](double) { return true; });
    dispatcher.done();
    require(count < 61 || logits.values.size() > 61, "samples have logits");
    require(equal(logits.values, expected_of(kind, head, set)),
            concat("logits of ", count, " samples through ", division.pp, " stages of ",
                   division.chunks, " chunks are those of one process (",
                   kind == Kind::bf16     ? "bf16"
                   : kind == Kind::device ? "device"
                                          : "f32",
                   ")"));
  }
}

void check_all(Communicator& comm) {
  for (Kind kind : {Kind::f32, Kind::bf16, Kind::device}) {
    for (Head head : {Head{HeadKind::token, 2}, Head{HeadKind::sequence, 3}}) {
      for (int pp = 1; pp <= comm.size(); ++pp) {
        if (comm.size() % pp != 0) continue;
        for (int chunks = 1; chunks <= (pp == 1 ? 1 : kLayers / pp); ++chunks) {
          check(comm, {pp, chunks, chunks % 2 == 0 ? kSpread : kCluster}, kind, head);
        }
      }
    }
  }
  const std::unique_ptr<Backend> bf16 = backend_of(Kind::bf16);
  if (comm.rank() == 0) std::printf("whole layers: %d\n", has_whole_layers(*bf16, stage_config()));
}

// Stops during an evaluation.
void stop_a_stage(Communicator& comm) {
  comm.set_timeout(2);
  const Head head{HeadKind::token, 2};
  Staged staged(comm, {comm.size(), 1, kCluster}, Kind::f32, head);
  BatchDispatcher dispatcher(*staged.engine, *staged.stages);
  if (comm.rank() == 0) {
    const SampleSet many = samples_of(9000);
    Logits logits(head, many);
    dispatcher.evaluate(logits, kMicroBatch, [](double) { return true; });
    return dispatcher.done();
  }
  if (comm.rank() == 1) {
    comm.note("evaluation", -1);
    std::raise(SIGSTOP);
  }
  dispatcher.serve();
}

int run(Communicator& comm, const std::string& scenario) {
  try {
    if (scenario == "equal") check_all(comm);
    if (scenario == "stopped") stop_a_stage(comm);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: error: %s: %s\n", comm.name(comm.rank()).c_str(), error.what());
    comm.abort(1);
  }
  comm.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<Communicator> comm = make_communicator();
  return run(*comm, argc > 1 ? argv[1] : "");
}
