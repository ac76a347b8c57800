// Lists the tensors that each process of a run has, for checkpoints, exports and sums.
#include "train/checkpoint/checkpoint_transfer.h"

#include <vector>

#include "distributed/tensors/whole_tensors.h"

namespace finetune {
namespace {

// Adds the moments: on a device the part that this process owns, in host memory the host's part.
void add_moments(const Communicator& replicas, const Learner& learner, std::vector<HeldRun>& runs) {
  const TrainingStep& step = *learner.step;
  const ZeroPartition& partition = step.partition();
  const bool of_host = learner.engine->backend().uses_host_memory();
  const std::vector<IndexRange> slices =
      of_host ? std::vector<IndexRange>{partition.host_dense(replicas.host())}
              : partition.slices_of(replicas, replicas.rank());
  const IndexRange rows =
      of_host ? partition.host_rows(replicas.host()) : partition.rows_of(replicas, replicas.rank());
  const int64_t words = partition.dense_elements(), cols = partition.cols();
  for (Arena arena : {Arena::m, Arena::v}) {
    const HostArena& moments = arena == Arena::m ? step.first_moments() : step.second_moments();
    for (IndexRange slice : slices) {
      if (slice.size() > 0) runs.push_back({arena, slice, moments.dense(slice.begin)});
    }
    const IndexRange elements{words + rows.begin * cols, words + rows.end * cols};
    if (rows.size() > 0) runs.push_back({arena, elements, moments.row(rows.begin)});
  }
}

std::vector<HeldPart> parts_of(const Machine& machine, const Learner& learner,
                               const ParameterTable& whole, WithMoments moments) {
  std::vector<HeldRun> runs;
  Engine& engine = *learner.engine;
  const HeldRun weights = all_weights(engine);  // the next use packs them again
  if (speaks_for_weights(engine, *machine.groups)) {
    runs.push_back(weights);
    if (moments == WithMoments::yes) add_moments(machine.groups->data(), learner, runs);
  }
  return held_parts(whole, held_slices(engine.table()), runs);
}

}  // namespace

void with_model_tensors(const Machine& machine, const Learner& learner, WithMoments moments,
                        const std::function<void(ModelTensors&)>& action) {
  learner.step->settle();
  Engine& engine = *learner.engine;
  const ParameterTable whole(engine.config(), engine.table().head());
  with_whole_tensors(machine.world, engine.backend(), whole,
                     parts_of(machine, learner, whole, moments), action);
}

void save_checkpoint(const Machine& machine, const Learner& learner, const CheckpointState& state,
                     const std::filesystem::path& path) {
  learner.step->settle();
  machine.world.note("checkpoint", state.step);
  with_model_tensors(machine, learner, WithMoments::yes,
                     [&](ModelTensors& tensors) { write_checkpoint(path, state, tensors); });
}

void load_checkpoint(const Machine& machine, const Learner& learner,
                     const std::filesystem::path& path, WithMoments moments, bool verified) {
  with_model_tensors(machine, learner, moments,
                     [&](ModelTensors& tensors) { read_checkpoint(path, tensors, verified); });
}

}  // namespace finetune
