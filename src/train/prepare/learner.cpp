// Makes a learner from the settings and the model's weights.
#include "train/prepare/learner.h"

#include <algorithm>

#include "comm/agreement.h"
#include "core/failure.h"
#include "distributed/pipeline/pipeline_simulation.h"
#include "distributed/reduce/tensor_sums.h"
#include "engine/scaled_head.h"
#include "train/layout/stages.h"
#include "train/plan/disk_forecast.h"
#include "train/run/process_check.h"

namespace finetune {
namespace {

PipelineShape shape_of(const Settings& settings, int64_t micro_batches) {
  return pipeline_shape(settings.options, settings.config, settings.split, micro_batches);
}

}  // namespace

ModelPart own_part(const Machine& machine, const Settings& settings) {
  return part_of(settings.split, machine.layout(), *settings.options.tensor_shards,
                 machine.world.rank());
}

int64_t activation_slots(const Machine& machine, const Settings& settings) {
  const Coordinates place = machine.groups->place();
  const int64_t shards =
      part(*settings.options.virtual_shards, machine.layout().dp(), place.d).size();
  return slots_of_stage(shape_of(settings, settings.shard_micro_batches), shards, place.p);
}

std::unique_ptr<CountedTensorSum> make_tensor_sum(const Machine& machine, const Settings& settings,
                                                  Backend& backend, const LayoutPeers* peers) {
  if (machine.layout().tp() == 1) return nullptr;
  int64_t tokens = reserved_size(backend, settings.training).tokens;
  if (settings.evaluation.tokens > 0) {
    tokens = std::max(tokens, reserved_size(backend, settings.evaluation).tokens);
  }
  Communicator& ranks = machine.groups->tensor();
  GroupPeers* devices = peers ? peers->along(Axis::tensor) : nullptr;
  return std::make_unique<CountedTensorSum>(
      ranks, make_tensor_sum(backend, ranks, devices, *settings.options.tensor_shards,
                             tokens * settings.config.hidden_size));
}

void check_weights_and_disk(const Machine& machine, const Settings& settings,
                            const TrainingArrays& arrays, const WeightSource* source) {
  agree_on_errors(machine.world, [&] {
    if (!source) return;
    const TrainOptions& options = settings.options;
    const ParameterTable table(settings.config, settings.head);
    check_initial(options, settings.config, table, *source, arrays.head_rows);
    if (!machine.leads()) return;
    const int64_t epoch = steps_per_epoch(arrays.samples.size(), *options.batch_size);
    require_disk(options, forecast_disk(options, table, settings.schedule.total_steps, epoch,
                                        settings.has_eval));
  });
}

PretrainedReport load_weights(const Machine& machine, const Settings& settings,
                              const TrainingArrays& arrays, const WeightSource* source,
                              std::unique_ptr<Backend> backend, Learner& learner) {
  Communicator& world = machine.world;
  world.note("loading weights", -1);
  const TrainOptions& options = settings.options;
  const ParameterTable table(settings.config, settings.head);
  Communicator& replicas = machine.groups->data();
  auto peers =
      std::make_unique<LayoutPeers>(*backend, *machine.groups, comm_timeout_seconds(options));
  learner.tensor_sum = make_tensor_sum(machine, settings, *backend, peers.get());
  with_memory_advice("for weights and optimizer; a smaller model needs less", [&] {
    learner.engine =
        std::make_unique<Engine>(std::move(backend), settings.config, settings.head, replicas,
                                 own_part(machine, settings), learner.tensor_sum.get());
  });
  learner.peers = std::move(peers);
  Engine& engine = *learner.engine;
  PretrainedReport report;
  agree_on_errors(world, [&] {
    if (!source) return;
    engine.set_weights([&](float* arena) {
      report = load_initial(options, settings.config, table, engine.table(), *source,
                            arrays.head_rows, arena);
      unscale_head(engine.table(), arrays.target_scale, arena);
    });
  });
  engine.share_weights(replicas);
  require_equal_content(*machine.groups, arrays, engine, source);
  return report;
}

void reserve_buffers(const Machine& machine, const Settings& settings, Learner& learner) {
  const TrainOptions& options = settings.options;
  const LayoutGroups& groups = *machine.groups;
  Engine& engine = *learner.engine;
  const BatchSize training = reserved_size(engine.backend(), settings.training);
  engine.reserve(training, settings.evaluation, options.recompute,
                 activation_slots(machine, settings), options.offload_activations.value_or(0));
  learner.objective->reserve(engine.backend(), training.sequences);
  GroupPeers* stages = learner.peers_along(Axis::pipeline);
  if (groups.layout().pp() > 1) {
    const auto bytes =
        size_t(state_floats(engine.config(), ModelChunk::of(engine.part(), 0), training.tokens)) *
        sizeof(float);
    learner.links = std::make_unique<PipelineLinks>(groups.pipeline(), engine.backend(),
                                                    shape_of(settings, 0), bytes, stages);
  }
  if (settings.has_eval && machine.has_parts()) {
    learner.replica_stages = std::make_unique<ReplicaStages>(engine, groups, stages);
  }
}

StagePlan stage_plan(const Machine& machine, const Settings& settings, const Learner& learner) {
  StagePlan plan;
  plan.world = &machine.world;
  plan.replicas = learner.peers_along(Axis::data);
  if (machine.layout().pp() == 1) return plan;
  plan.actions = [shape = shape_of(settings, 0),
                  stage = machine.groups->place().p](int64_t micro_batches) mutable {
    shape.micro_batches = int(micro_batches);
    return pipeline_actions(shape, stage);
  };
  plan.links = learner.links.get();
  return plan;
}

}  // namespace finetune
