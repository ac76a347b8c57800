// The formulas behind docs/layouts.md, for the processes of a stage.
#include "train/plan/layout_forecast.h"

#include <algorithm>
#include <numeric>

#include "distributed/pipeline/pipeline_simulation.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/zero_partition.h"
#include "model/activations.h"
#include "train/plan/device_forecast.h"

namespace finetune {
namespace {

// Bytes that an update reads and writes per element: weight, gradient, two moments.
constexpr double kUpdateBytes = 28;
// Rounds of a pipeline that are simulated. Further rounds are assumed to take as long as the last
// one. Pipelines with more passes than the maximum are not simulated.
constexpr int kRounds = 4;
constexpr int64_t kMostSimulatedPasses = 100'000;

int64_t share_of(int64_t count, int64_t numerator, int64_t denominator) {
  return count / denominator * numerator + count % denominator * numerator / denominator;
}

ParameterTable table_of(const LayoutRun& run, int stage, int rank = 0) {
  const ModelPart part = part_of(run.split, stage, run.tensor_shards, run.layout.tp(), rank);
  return {run.config, run.head, part};
}

// The share of a group's peers that are on other hosts, for the member with most such peers.
struct Reach {
  double outside = 0;
  double seconds(const Rates& rates, int processes_of_a_host, double bytes) const {
    const double inside = bytes * (1 - outside) / rates.link_bandwidth;
    return std::max(inside, bytes * outside * processes_of_a_host / rates.host_bandwidth);
  }
  double latency(const Rates& rates) const {
    return outside > 0 ? rates.host_latency : rates.link_latency;
  }
};

Reach reach_of(const LayoutRun& run, Axis axis) {
  const int size = run.layout.size(axis);
  if (size == 1) return {};
  int most = 0;
  for (const std::vector<int>& group : run.layout.groups(axis)) {
    // Host numbers rise with ranks, so a host's members are adjacent.
    int fewest = size;
    for (size_t i = 0, next; i < group.size(); i = next) {
      const int end = run.first_rank[size_t(host_of(group[i], run.first_rank)) + 1];
      for (next = i; next < group.size() && group[next] < end; ++next) continue;
      fewest = std::min(fewest, int(next - i));
    }
    most = std::max(most, size - fewest);
  }
  return {double(most) / double(size - 1)};
}

int most_processes_of_a_host(const std::vector<int>& first_rank) {
  int most = 1;
  for (size_t h = 1; h < first_rank.size(); ++h) {
    most = std::max(most, first_rank[h] - first_rank[h - 1]);
  }
  return most;
}

// Seconds of one micro-batch in one chunk.
struct ChunkSeconds {
  double forward = 0, backward = 0, sums = 0;  // sums between tensor ranks, in both passes
};

class StepTimes {
 public:
  StepTimes(const LayoutRun& run, const Rates& rates)
      : run_(run),
        rates_(rates),
        local_(most_processes_of_a_host(run.first_rank)),
        costs_(layer_costs(run.config, run.head, run.length)),
        data_(reach_of(run, Axis::data)) {
    tokens_ =
        double(run.replica_tokens()) / double(std::max<int64_t>(1, run.replica_micro_batches()));
    const double message = double(kFloatBytes * run.config.hidden_size) * tokens_;
    const double t = run.layout.tp();
    const Reach tensor = reach_of(run, Axis::tensor), pipeline = reach_of(run, Axis::pipeline);
    if (t > 1) {
      sum_ = 2 * tensor.latency(rates) + tensor.seconds(rates, local_, 2 * (t - 1) / t * message);
    }
    // Assume the slowest case: each boundary between stages is a boundary between hosts.
    const Reach farthest{pipeline.outside > 0 ? 1.0 : 0.0};
    if (run.layout.pp() > 1) {
      transfer_ = farthest.latency(rates) + farthest.seconds(rates, local_, message);
    }
  }

  ChunkSeconds of(IndexRange layers) const {
    const double sums = double(layers.size()) * sum_;
    double flops = 0;  // of one token on this tensor rank
    for (int64_t l = layers.begin; l < layers.end; ++l) flops += costs_.layers[size_t(l)];
    const double shared = costs_.total(layers) - flops;  // embeddings and head are not cut
    const double compute = (flops / run_.layout.tp() + shared) * tokens_ / rates_.flops;
    const double pass = compute + double(layers.size()) * rates_.layer_latency;
    ChunkSeconds seconds;
    seconds.forward = pass + 2 * sums;
    seconds.backward = (run_.recompute ? 3 : 2) * pass + (run_.recompute ? 4 : 2) * sums;
    seconds.sums = (run_.recompute ? 6 : 4) * sums;
    if (run_.horizon > 0) {
      const double bytes = double(layers.size() * kFloatBytes * run_.config.hidden_size) * tokens_;
      seconds.forward = std::max(seconds.forward, bytes / rates_.offload_bandwidth);
      seconds.backward = std::max(seconds.backward, bytes / rates_.offload_bandwidth);
    }
    return seconds;
  }

  double transfer() const { return transfer_; }

  // Half of the bytes are gradients, which are sent layer by layer during the last backward pass.
  double data(int64_t bytes, double backward) const {
    if (run_.layout.dp() == 1) return 0;
    const double half = data_.latency(rates_) + data_.seconds(rates_, local_, double(bytes) / 2);
    return std::max(0.0, half - backward) + half;
  }

 private:
  const LayoutRun& run_;
  const Rates& rates_;
  int local_;
  LayerCosts costs_;
  Reach data_;
  double tokens_ = 0;  // mean of a micro-batch
  double sum_ = 0, transfer_ = 0;
};

}  // namespace

int64_t default_micro_batches(const Layout& layout, int64_t virtual_shards) {
  return divided_up(int64_t{4} * layout.pp() * layout.dp(), virtual_shards);
}

int64_t LayoutRun::replica_samples() const {
  const IndexRange shards = replica_shards();
  return shards.size() == 0 ? 0
                            : part(batch_size, virtual_shards, shards.end - 1).end -
                                  part(batch_size, virtual_shards, shards.begin).begin;
}

PipelineShape LayoutRun::pipeline() const {
  return {schedule, split.stages(), split.chunks_of_a_stage(), int(replica_micro_batches()), 0};
}

StageMemory stage_memory(const LayoutRun& run, int stage) {
  const ParameterTable table = table_of(run, stage);
  const ModelPart& part = table.part();
  StageMemory m;
  m.parameters = table.count();
  m.weights = kFloatBytes * m.parameters + rounded_weight_bytes(table, run.compute);
  // A process without shards still has an arena for sums.
  const IndexRange shards = run.replica_shards();
  m.gradients =
      std::max<int64_t>(1, LocalReduce::arenas_needed(shards)) * kFloatBytes * m.parameters;
  m.whole_moments = 2 * kFloatBytes * m.parameters;
  m.moments = divided_up(m.whole_moments, run.layout.dp());

  const int64_t tokens = run.micro_batch_tokens, slots = most_slots(run.pipeline(), stage);
  const InputRing ring =
      InputRing::make(run.config, run.head, part, tokens, slots, run.recompute ? run.horizon : 0);
  int64_t slot = 0, working = 0;
  for (int64_t chunk = 0; chunk < int64_t(part.chunks.size()); ++chunk) {
    const ActivationPlan plan = ActivationPlan::training(
        run.config, run.head, ModelChunk::of(part, chunk), run.compute, tokens,
        divided_up(tokens, run.length), run.recompute, 0, kAbsent, ring);
    slot = std::max(slot, plan.kept);
    working = std::max(working, plan.working);
  }
  m.kept = kFloatBytes * (slots * slot + ring.floats());
  m.working = kFloatBytes * working;
  m.offloaded = kFloatBytes * ring.host_floats(slots);
  return m;
}

namespace {

// Rows of (R, H) sums that the tensor ranks of a stage compute for `samples` samples.
int64_t added_rows(const LayoutRun& run, int stage, int64_t samples) {
  const int64_t tokens = samples * run.length;
  const bool first_only =
      stage + 1 == run.split.stages() && run.config.reads_first_only(run.head.kind);
  const bool one_slot = most_slots(run.pipeline(), stage) <= 1;
  int64_t rows = 4 * tokens * run.split.layers(stage);
  if (first_only) rows -= 3 * tokens - 4 * samples;
  if (!run.recompute) return rows;
  const int64_t again = run.split.layers(stage) - (one_slot ? run.split.chunks_of_a_stage() : 0);
  rows += 2 * tokens * again;
  return first_only && !one_slot ? rows - 2 * (tokens - samples) : rows;
}

// Values of a stage's part that go between replicas, counted once.
int64_t moving_values(const LayoutRun& run, const ParameterTable& table) {
  const Parameter* words = word_embeddings(table);
  return words ? words->offset + run.moving_rows() * run.config.embedding_size() : table.size();
}

// Bytes of gradients and weights that a process of the stage with this table sends.
int64_t data_bytes(const LayoutRun& run, const ParameterTable& table) {
  const int64_t d = run.layout.dp();
  return d == 1 ? 0 : share_of(2 * kFloatBytes * moving_values(run, table), d - 1, d);
}

}  // namespace

StepBytes step_bytes(const LayoutRun& run) {
  const int64_t h = run.config.hidden_size, t = run.layout.tp(), d = run.layout.dp();
  StepBytes bytes;
  const int64_t boundaries = run.pipeline().blocks() - 1;
  bytes.pipeline = 2 * boundaries * kFloatBytes * run.batch_size * run.length * h * t;
  for (int stage = 0; stage < run.split.stages(); ++stage) {
    bytes.tensor += 2 * (t - 1) * kFloatBytes * h * added_rows(run, stage, run.batch_size);
    for (int rank = 0; rank < t && d > 1; ++rank) {
      bytes.data += 2 * (d - 1) * kFloatBytes * moving_values(run, table_of(run, stage, rank));
    }
  }
  return bytes;
}

AxisBytes axis_bytes(const LayoutRun& run, int stage) {
  const int64_t t = run.layout.tp();
  // The hidden states of all micro-batches, counted once.
  const int64_t states = kFloatBytes * run.replica_tokens() * run.config.hidden_size;
  const int64_t blocks = run.pipeline().blocks();
  AxisBytes bytes;
  const int64_t rows = added_rows(run, stage, run.replica_samples());
  bytes.tensor = share_of(2 * kFloatBytes * rows * run.config.hidden_size, t - 1, t);
  if (run.split.stages() > 1) {
    const int64_t chunks = run.split.chunks_of_a_stage();
    bytes.boundary = 2 * states * chunks;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t block = chunk * run.split.stages() + stage;
      bytes.pipeline += states * ((block + 1 < blocks) + (block > 0));
    }
  }
  bytes.data = data_bytes(run, table_of(run, stage));
  return bytes;
}

double bubble(int64_t stages, int64_t chunks, int64_t micro_batches) {
  return double(stages - 1) / double(chunks * micro_batches + stages - 1);
}

namespace {

// The time until the last stage ends: the slowest stage works without a pause, and the first
// micro-batch passes through all others.
double pipeline_by_formula(const std::vector<double>& computes, const PipelineShape& shape,
                           double transfer) {
  const double slowest = *std::max_element(computes.begin(), computes.end());
  const double all = std::accumulate(computes.begin(), computes.end(), 0.0);
  return shape.micro_batches * slowest + (all - slowest) / shape.chunks +
         2 * (shape.stages - 1) * transfer;
}

// A shape with fewer micro-batches and the same end: leaves out whole rounds, which are all alike.
PipelineShape shortened(PipelineShape shape) {
  const int all = shape.micro_batches, stages = shape.stages;
  if (all > (kRounds + 1) * stages) shape.micro_batches = kRounds * stages + all % stages;
  return shape;
}

bool is_too_long(const PipelineShape& shape) {
  return int64_t{1} * shape.micro_batches * shape.blocks() > kMostSimulatedPasses;
}

double pipeline_seconds(const std::vector<std::vector<ChunkSeconds>>& chunks,
                        const std::vector<double>& computes, const PipelineShape& whole,
                        double transfer) {
  const PipelineShape shape = shortened(whole);
  if (is_too_long(shape)) return pipeline_by_formula(computes, whole, transfer);
  const PipelineTimes times = simulate(shape, [&](int s, const PipelineAction& action) {
    const ChunkSeconds& of = chunks[size_t(s)][size_t(action.chunk)];
    return action.kind == PipelineAction::Kind::forward    ? of.forward
           : action.kind == PipelineAction::Kind::backward ? of.backward
                                                           : transfer;
  });
  return times.makespan + (whole.micro_batches - shape.micro_batches) *
                              *std::max_element(computes.begin(), computes.end());
}

}  // namespace

StepForecast step_forecast(const LayoutRun& run, const Rates& rates) {
  const StepTimes times(run, rates);
  const int stages = run.split.stages();
  const double micro_batches = double(run.replica_micro_batches());
  StepForecast step;
  std::vector<std::vector<ChunkSeconds>> chunks{size_t(stages)};
  double busy = 0;
  for (int s = 0; s < stages; ++s) {
    double sums = 0, compute = 0, backward = 0;
    for (IndexRange layers : run.split.chunks[size_t(s)]) {
      const ChunkSeconds of = times.of(layers);
      chunks[size_t(s)].push_back(of);
      compute += of.forward + of.backward;
      sums += of.sums;
      backward += of.backward;
    }
    const ParameterTable table = table_of(run, s);
    const double owned = double(table.count()) / run.layout.dp();
    step.computes.push_back(compute);
    step.tensor = std::max(step.tensor, sums * micro_batches);
    step.data = std::max(step.data, times.data(data_bytes(run, table), backward));
    step.update = std::max(step.update, owned * kUpdateBytes / rates.memory_bandwidth);
    busy += compute * micro_batches;
  }
  step.pipeline = pipeline_seconds(chunks, step.computes, run.pipeline(), times.transfer());
  step.simulated = !is_too_long(shortened(run.pipeline()));
  if (stages > 1) step.bubble = 1 - busy / (step.pipeline * stages);
  return step;
}

}  // namespace finetune
