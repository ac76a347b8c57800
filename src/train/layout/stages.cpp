// Makes groups, stages, slots and links of a run from its options.
#include "train/layout/stages.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "comm/agreement.h"
#include "core/error.h"
#include "distributed/pipeline/pipeline_simulation.h"
#include "distributed/reduce/tensor_ranks_sum.h"
#include "train/run/layout_table.h"
#include "train/run/run_setup.h"

namespace finetune {
namespace {

constexpr int64_t kUnknownLength = 128;      // tokens of a sample, where only errors are asked for
constexpr int64_t kMostSimulated = 1 << 18;  // passes

PipelineShape shape_of(const Session& s, int64_t micro_batches) {
  PipelineShape shape;
  shape.kind = parse_pipeline_kind(s.options.pipeline_schedule);
  shape.stages = s.split.stages();
  shape.chunks = s.split.chunks_of_a_stage();
  shape.micro_batches = int(micro_batches);
  // Blocks end with an encoder layer, which is layer `end` of the table's.
  const int lowest = lowest_trained_layer(s.options, s.model.config);
  const int last = shape.blocks() - 1;
  auto end_of = [&](int block) {
    return s.split.chunks[size_t(block % shape.stages)][size_t(block / shape.stages)].end;
  };
  while (shape.lowest_block < last && end_of(shape.lowest_block) < lowest) ++shape.lowest_block;
  return shape;
}

int64_t samples_of_a_shard(const TrainOptions& o) {
  return part(o.batch_size, *o.virtual_shards, 0).size();
}

// Of one virtual shard, whatever the lengths of its samples.
int64_t most_micro_batches(const Session& s) {
  const int64_t samples = samples_of_a_shard(s.options);
  if (s.options.micro_batches) return std::min(*s.options.micro_batches, samples);
  const SampleView& all = s.objective->samples();
  int64_t longest = 1;
  for (int64_t i = 0; i < all.size(); ++i) longest = std::max(longest, all.length(i));
  return divided_up(samples, std::max<int64_t>(1, *s.options.micro_batch_tokens / longest));
}

BatchSize training_size(const Session& s, const Backend& backend) {
  return reserved_size(backend,
                       micro_batch_limits(s.objective->samples(), micro_batching(s.options),
                                          samples_of_a_shard(s.options)));
}

std::vector<int> first_ranks(const Communicator& comm) {
  std::vector<int> first;
  for (int host = 0; host <= comm.hosts(); ++host) first.push_back(comm.first_rank(host));
  return first;
}

void require_tensor_ranks_on_a_host(const Layout& layout, const std::vector<int>& first_rank) {
  for (const std::vector<int>& group : layout.groups(Axis::tensor)) {
    if (hosts_of(group, first_rank).size() == 1) continue;
    std::vector<std::string> ranks;
    for (int rank : group) ranks.push_back(concat(rank));
    throw usage_error("--tp ", layout.tp(), ": the tensor ranks ", join(ranks, ", "),
                      " are on several hosts, which is not built; choose another --placement or a "
                      "smaller --tp");
  }
}

}  // namespace

void make_groups(Session& s) {
  Layout layout;
  agree_on_errors(s.comm, [&] {
    layout = Layout(s.comm.size(), s.options.pp.value_or(1), s.options.tp.value_or(1),
                    parse_placement(s.options.placement));
    require_tensor_ranks_on_a_host(layout, first_ranks(s.comm));
  });
  s.groups = std::make_unique<LayoutGroups>(s.comm, layout);
}

// The head's outputs are left out of the costs: processes agree on them later.
StageSplit stages_of(const TrainOptions& o, const BertConfig& config, HeadKind head) {
  const int64_t tp = o.tp.value_or(1);
  check_tensor_shards(o.tensor_shards.value_or(tp), tp, config.num_attention_heads,
                      config.intermediate_size);
  const int stages = int(o.pp.value_or(1));
  const int chunks = chunks_of(parse_pipeline_kind(o.pipeline_schedule), stages,
                               int(o.chunks.value_or(kDefaultChunks)));
  const int64_t length = o.max_length.value_or(kUnknownLength);
  return split_stages(o.stages, stages, chunks, layer_costs(config, {head, 2}, length));
}

void cut_into_stages(Session& s) {
  agree_on_errors(s.comm, [&] {
    s.split = stages_of(s.options, s.model.config, s.head.kind);
    const int64_t dp = s.groups->layout().dp();
    if (s.split.chunks_of_a_stage() > 1 && *s.options.virtual_shards > dp) {
      throw usage_error("--pipeline-schedule interleaved needs a replica for each virtual shard: ",
                        "--virtual-shards is ", *s.options.virtual_shards, ", the replicas are ",
                        dp);
    }
  });
}

ModelPart own_part(const Session& s) {
  return part_of(s.split, s.groups->layout(), *s.options.tensor_shards, s.comm.rank());
}

std::unique_ptr<TensorSum> make_tensor_sum(Session& s, const Backend& backend,
                                           BatchSize evaluation) {
  if (s.groups->layout().tp() == 1) return nullptr;
  int64_t tokens = training_size(s, backend).tokens;
  if (evaluation.tokens > 0) tokens = std::max(tokens, reserved_size(backend, evaluation).tokens);
  return make_shared_tensor_sum(s.groups->tensor(), *s.options.tensor_shards,
                                tokens * s.model.config.hidden_size);
}

int64_t activation_slots(const Session& s) {
  const LayoutGroups& groups = *s.groups;
  const Coordinates place = groups.place();
  const int64_t shards = part(*s.options.virtual_shards, groups.layout().dp(), place.d).size();
  const int64_t micro_batches =
      groups.layout().pp() > 1 ? most_micro_batches(s) * shards : std::min<int64_t>(shards, 1);
  return std::max(1, most_slots(shape_of(s, micro_batches), place.p));
}

void reserve_buffers(Session& s, BatchSize evaluation) {
  const BatchSize training = training_size(s, s.engine->backend());
  const LayoutGroups& groups = *s.groups;
  s.engine->reserve(training, evaluation, s.options.recompute, activation_slots(s),
                    s.options.offload_activations.value_or(0));
  s.objective->reserve(s.engine->backend(), training.sequences);
  if (groups.layout().pp() > 1) {
    const auto capacity = size_t(training.tokens * s.model.config.hidden_size) * sizeof(float);
    s.links = std::make_unique<PipelineLinks>(groups.pipeline(), s.engine->backend(),
                                              s.split.chunks_of_a_stage(), capacity);
  }
  if (s.has_eval && s.has_parts())
    s.replica_stages = std::make_unique<ReplicaStages>(*s.engine, groups);
}

StagePlan stage_plan(const Session& s) {
  StagePlan plan;
  plan.world = &s.comm;
  if (s.groups->layout().pp() == 1) return plan;
  plan.actions = [shape = shape_of(s, 0), stage = s.groups->place().p](int64_t m) mutable {
    shape.micro_batches = int(m);
    return pipeline_actions(shape, stage);
  };
  plan.links = s.links.get();
  return plan;
}

void take_layout_defaults(TrainOptions& o, const Layout& layout) {
  if (!o.virtual_shards) o.virtual_shards = layout.dp();
  if (!o.tensor_shards) o.tensor_shards = layout.tp();
  if (layout.pp() == 1 || o.micro_batch_tokens || o.micro_batches) return;
  o.micro_batches = default_micro_batches(layout, *o.virtual_shards);
}

LayoutRun layout_run(const Session& s) {
  LayoutRun run;
  run.config = s.model.config;
  run.head = s.head;
  run.layout = s.groups->layout();
  run.tensor_shards = *s.options.tensor_shards;
  run.split = s.split;
  run.schedule = parse_pipeline_kind(s.options.pipeline_schedule);
  run.first_rank = first_ranks(s.comm);
  run.virtual_shards = *s.options.virtual_shards;
  run.batch_size = s.options.batch_size;
  run.length = *s.options.max_length;
  run.micro_batches = most_micro_batches(s);
  run.micro_batch_tokens =
      divided_up(samples_of_a_shard(s.options), run.micro_batches) * run.length;
  run.compute = s.options.precision == "bf16" ? DType::bf16 : DType::f32;
  run.recompute = s.options.recompute;
  run.horizon = s.options.offload_activations.value_or(0);
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

void write_layout(const Session& s) {
  if (!s.has_parts()) {  // one that is continued may have had some
    std::error_code ignored;
    std::filesystem::remove(s.directory->layout(), ignored);
    return;
  }
  const LayoutRun run = layout_run(s);
  write_layout(s.directory->layout(), {run, host_names(s.comm)});
}

void add_pipeline_metrics(Session& s, int64_t steps, Metrics& metrics) {
  if (!s.links) return;
  const int64_t own = s.links->bytes_sent();
  std::vector<int64_t> all(size_t(s.comm.size()));
  s.comm.all_gather(&own, sizeof own, all.data());
  const double bytes = double(std::accumulate(all.begin(), all.end(), int64_t{0}));
  metrics["pipeline_bubble"] = forecast_bubble(layout_run(s));
  metrics["pp_bytes"] = bytes / double(std::max<int64_t>(1, steps));
}

}  // namespace finetune
