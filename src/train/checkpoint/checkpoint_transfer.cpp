// What a process of a run has of the model's tensors, for its checkpoints, exports and sums.
#include "train/checkpoint/checkpoint_transfer.h"

#include <vector>

#include "distributed/tensors/whole_tensors.h"

namespace finetune {
namespace {

// Of the moments: on a device this process's part, else the host's.
void add_moments(const Session& s, std::vector<HeldRun>& runs) {
  const ZeroPartition& partition = s.step->partition();
  const Communicator& replicas = s.groups->data();
  const bool of_host = s.engine->backend().uses_host_memory();
  const std::vector<IndexRange> slices =
      of_host ? std::vector<IndexRange>{partition.host_dense(replicas.host())}
              : partition.slices_of(replicas, replicas.rank());
  const IndexRange rows =
      of_host ? partition.host_rows(replicas.host()) : partition.rows_of(replicas, replicas.rank());
  const int64_t words = partition.dense_elements(), cols = partition.cols();
  for (Arena arena : {Arena::m, Arena::v}) {
    const HostArena& moments =
        arena == Arena::m ? s.step->first_moments() : s.step->second_moments();
    for (IndexRange slice : slices) {
      if (slice.size() > 0) runs.push_back({arena, slice, moments.dense(slice.begin)});
    }
    const IndexRange elements{words + rows.begin * cols, words + rows.end * cols};
    if (rows.size() > 0) runs.push_back({arena, elements, moments.row(rows.begin)});
  }
}

std::vector<HeldPart> parts_of(Session& s, const ParameterTable& whole, WithMoments moments) {
  std::vector<HeldRun> runs;
  const HeldRun weights = all_weights(*s.engine);  // packed anew when they are used next
  if (speaks_for_weights(*s.engine, *s.groups)) {
    runs.push_back(weights);
    if (moments == WithMoments::yes) add_moments(s, runs);
  }
  return held_parts(whole, held_slices(s.engine->table()), runs);
}

}  // namespace

void with_model_tensors(Session& s, WithMoments moments,
                        const std::function<void(ModelTensors&)>& action) {
  s.step->settle();
  const ParameterTable whole(s.engine->config(), s.engine->table().head());
  with_whole_tensors(s.comm, s.engine->backend(), whole, parts_of(s, whole, moments), action);
}

void save_checkpoint(Session& s, const std::filesystem::path& path) {
  s.step->settle();
  s.comm.note("checkpoint", s.state.step);
  with_model_tensors(s, WithMoments::yes,
                     [&](ModelTensors& tensors) { write_checkpoint(path, s.state, tensors); });
}

void load_checkpoint(Session& s, const std::filesystem::path& path, bool moments, bool verified) {
  with_model_tensors(s, moments ? WithMoments::yes : WithMoments::no,
                     [&](ModelTensors& tensors) { read_checkpoint(path, tensors, verified); });
}

}  // namespace finetune
