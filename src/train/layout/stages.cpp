// Cuts layers and batches for a layout, and measures the bytes that its axes exchange.
#include "train/layout/stages.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "comm/agreement.h"
#include "core/error.h"
#include "core/files/file_kind.h"
#include "distributed/pipeline/pipeline_simulation.h"
#include "train/options/options.h"
#include "train/run/layout_table.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

constexpr int64_t kUnknownLength = 128;      // tokens of a sample, if only errors matter
constexpr int64_t kMostSimulated = 1 << 18;  // passes

int64_t samples_of_a_shard(const TrainOptions& o) {
  return part(*o.batch_size, *o.virtual_shards, 0).size();
}

}  // namespace

Layout layout_of(const TrainOptions& o, int processes) {
  return Layout(processes, o.pp.value_or(1), o.tp.value_or(1), parse_placement(o.placement));
}

std::unique_ptr<LayoutGroups> make_groups(Communicator& world, const TrainOptions& options) {
  Layout layout;
  agree_on_errors(world, [&] { layout = layout_of(options, world.size()); });
  return std::make_unique<LayoutGroups>(world, layout);
}

// The costs leave out the head's outputs: processes agree on their number later.
StageSplit stages_of(const TrainOptions& o, const EncoderConfig& config, HeadKind head) {
  const int64_t tp = o.tp.value_or(1);
  check_tensor_shards(o.tensor_shards.value_or(tp), tp, config.num_attention_heads,
                      config.intermediate_size);
  const int stages = int(o.pp.value_or(1));
  const int chunks = chunks_of(parse_pipeline_kind(o.pipeline_schedule), stages,
                               int(o.chunks.value_or(kDefaultChunks)));
  const int64_t length = o.max_length.value_or(kUnknownLength);
  StageSplit split = split_stages(o.stages, stages, chunks, layer_costs(config, {head, 2}, length));
  require_own_weights(split, config);
  return split;
}

PipelineShape pipeline_shape(const TrainOptions& o, const EncoderConfig& config,
                             const StageSplit& split, int64_t micro_batches) {
  PipelineShape shape;
  shape.kind = parse_pipeline_kind(o.pipeline_schedule);
  shape.stages = split.stages();
  shape.chunks = split.chunks_of_a_stage();
  shape.micro_batches = int(micro_batches);
  // Each block ends with encoder layer `end`, counted as in the parameter table.
  const int lowest = lowest_trained_layer(o, config);
  const int last = shape.blocks() - 1;
  auto end_of = [&](int block) {
    return split.chunks[size_t(block % shape.stages)][size_t(block / shape.stages)].end;
  };
  while (shape.lowest_block < last && end_of(shape.lowest_block) < lowest) ++shape.lowest_block;
  return shape;
}

int64_t most_micro_batches(const TrainOptions& o, const SampleView& all) {
  const int64_t samples = samples_of_a_shard(o);
  if (o.micro_batches) return std::min(*o.micro_batches, samples);
  int64_t longest = 1;
  for (int64_t i = 0; i < all.size(); ++i) longest = std::max(longest, all.length(i));
  return divided_up(samples, std::max<int64_t>(1, *o.micro_batch_tokens / longest));
}

int slots_of_stage(const PipelineShape& of_a_shard, int64_t shards, int stage) {
  PipelineShape shape = of_a_shard;
  shape.micro_batches =
      int(shape.stages > 1 ? shape.micro_batches * shards : std::min<int64_t>(shards, 1));
  return std::max(1, most_slots(shape, stage));
}

void plan_micro_batches(Settings& settings, const SampleView& training) {
  const TrainOptions& options = settings.options;
  settings.split = stages_of(options, settings.config, settings.head.kind);
  settings.shard_micro_batches = most_micro_batches(options, training);
  settings.training =
      micro_batch_limits(training, micro_batching(options), samples_of_a_shard(options));
}

void take_layout_defaults(TrainOptions& o, const Layout& layout) {
  if (!o.virtual_shards) o.virtual_shards = layout.dp();
  if (!o.tensor_shards) o.tensor_shards = layout.tp();
  if (layout.pp() == 1 || o.micro_batch_tokens || o.micro_batches) return;
  o.micro_batches = default_micro_batches(layout, *o.virtual_shards);
}

LayoutRun layout_run(const Machine& machine, const Settings& settings) {
  const TrainOptions& options = settings.options;
  LayoutRun run;
  run.config = settings.config;
  run.head = settings.head;
  run.layout = machine.layout();
  run.tensor_shards = *options.tensor_shards;
  run.split = settings.split;
  run.schedule = parse_pipeline_kind(options.pipeline_schedule);
  run.first_rank = first_ranks(machine.world);
  run.virtual_shards = *options.virtual_shards;
  run.batch_size = *options.batch_size;
  run.length = *options.max_length;
  run.micro_batches = settings.shard_micro_batches;
  run.micro_batch_tokens = divided_up(samples_of_a_shard(options), run.micro_batches) * run.length;
  run.compute = options.precision == "bf16" ? DType::bf16 : DType::f32;
  run.recompute = options.recompute;
  run.horizon = options.offload_activations.value_or(0);
  return run;
}

LayoutRun layout_run(const Communicator& comm, const EncoderConfig& config, const TrainOptions& o) {
  validate_pipeline(o);
  for (const auto& [name, value] : {std::pair("--pp", o.pp), {"--tp", o.tp}}) {
    if (value.value_or(1) < 1) throw usage_error(name, " ", *value, ": must be at least 1");
  }
  LayoutRun run;
  run.config = config;
  run.head = {HeadKind::sequence, 2};
  run.layout = layout_of(o, comm.size());
  run.tensor_shards = run.layout.tp();
  run.split = stages_of(o, config, run.head.kind);
  run.first_rank = first_ranks(comm);
  run.virtual_shards = run.layout.dp();
  run.micro_batches = default_micro_batches(run.layout, run.virtual_shards);
  run.batch_size = run.virtual_shards * run.micro_batches;
  run.length = run.micro_batch_tokens = std::min(kUnknownLength, config.max_length());
  return run;
}

// "rank 3 on node7" names the host too.
std::vector<std::string> host_names(const Communicator& comm) {
  constexpr std::string_view kOn = " on ";
  std::vector<std::string> names;
  for (int host = 0; host < comm.hosts(); ++host) {
    const std::string name = comm.name(comm.first_rank(host));
    const size_t at = name.find(kOn);
    names.push_back(at == std::string::npos ? name : name.substr(at + kOn.size()));
  }
  return names;
}

double forecast_bubble(const LayoutRun& run) {
  const PipelineShape shape = run.pipeline();
  if (int64_t{shape.blocks()} * shape.micro_batches > kMostSimulated) {
    return bubble(shape.stages, shape.chunks, shape.micro_batches);
  }
  const LayerCosts costs = layer_costs(run.config, run.head, run.length);
  const double backward = run.recompute ? 3 : 2;
  return simulate(shape,
                  [&](int stage, const PipelineAction& action) {
                    const double forward =
                        costs.total(run.split.chunks[size_t(stage)][size_t(action.chunk)]);
                    if (action.kind == PipelineAction::Kind::forward) return forward;
                    return action.kind == PipelineAction::Kind::backward ? backward * forward : 0.0;
                  })
      .bubble;
}

void write_layout(const std::filesystem::path& path, const Machine& machine,
                  const Settings& settings) {
  if (!machine.has_parts()) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (!error) return;
    throw system_failure(path, error.value(), ExitCode::model, "cannot be removed: ");
  }
  const LayoutRun run = layout_run(machine, settings);
  write_layout(path, {run, host_names(machine.world)});
}

StepBytes bytes_of_steps(Communicator& world, const Learner& learner) {
  const StepBytes own{learner.tensor_sum ? learner.tensor_sum->bytes() : 0,
                      learner.links ? learner.links->bytes_sent() : 0, learner.step->data_bytes()};
  std::vector<StepBytes> all(size_t(world.size()));
  world.all_gather(&own, sizeof own, all.data());
  StepBytes sum;
  for (const StepBytes& each : all) {
    sum.tensor += each.tensor;
    sum.pipeline += each.pipeline;
    sum.data += each.data;
  }
  return sum;
}

void add_layout_metrics(const Machine& machine, const Settings& settings, const Learner& learner,
                        int64_t steps, Metrics& metrics) {
  if (machine.world.size() == 1) return;
  const StepBytes bytes = bytes_of_steps(machine.world, learner);
  const auto of_a_step = [&](int64_t sum) {
    return double(sum) / double(std::max<int64_t>(1, steps));
  };
  const Layout& layout = machine.layout();
  if (layout.pp() > 1) {
    metrics["pipeline_bubble"] = forecast_bubble(layout_run(machine, settings));
    metrics["pp_bytes"] = of_a_step(bytes.pipeline);
  }
  if (layout.tp() > 1) metrics["tp_bytes"] = of_a_step(bytes.tensor);
  if (layout.dp() > 1 && learner.step->counts_data_bytes()) {
    metrics["dp_bytes"] = of_a_step(bytes.data);
  }
}

}  // namespace finetune
