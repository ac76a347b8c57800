// The memory of a run before it is there. Weights, gradients, moments and activations follow from
// the model's shape and the micro-batches that the run will have, by formula; program and data are
// measured in the process that asks. Pages that nobody touches cost nothing, so what counts is the
// largest micro-batch that there will be, not the largest one that buffers have room for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "distributed/layout/stage_split.h"
#include "model/encoder.h"
#include "model/head.h"
#include "ops/backend.h"
#include "tasks/task.h"
#include "train/options/options.h"
#include "train/plan/workload.h"

namespace finetune {

// What every process of a run has in common.
struct RunFacts {
  int lowest_layer = 0;
  std::vector<bool> words{};  // rows of the word embedding that the data have
  int64_t weight_file_bytes = 0;
  // Resident, measured: the program once it has worked, pages of files among it,
  // and what the data add.
  int64_t program_bytes = 0, program_file_bytes = 0, data_bytes = 0;
};

// What a process has, whatever its micro-batches.
struct RunShape {
  const ParameterTable& table;
  const Encoder& encoder;
  RunFacts facts{};
  int64_t shards = 1, processes = 1;
  int64_t slots = 1;  // of activations in training (Encoder::reserve)
  // Where the processes are on several hosts, those of this one; else all.
  std::optional<IndexRange> here = std::nullopt;
  bool checkpoints = true;  // which read all moments
  bool alone = true;        // no process has another part of the model
  // Of a masked head, the tokens whose words are hidden: activations have room for all.
  double scored_share = 1;

  IndexRange local() const { return here.value_or(IndexRange{0, processes}); }
};

// Bytes. Of one process; where a host has several, of the one that reads the data (rank 0).
struct MemoryForecast {
  int64_t weights = 0;
  int64_t gradients = 0;    // of all arenas that this process touches
  int64_t optimizer = 0;    // m and v
  int64_t activations = 0;  // and the micro-batch
  int64_t data = 0;         // vocabulary, texts and tokens
  int64_t program = 0;      // with libraries, threads and what matrix products pack
  int64_t shared = 0;       // weights, gradients and moments of all processes of the host
  int64_t peak = 0;         // forecast of peak_memory_mb
  int64_t host = 0;         // all processes together, what they share counted once
  int64_t common = 0;       // of it what processes with other parts of the model have in common
};

MemoryForecast forecast_memory(const RunShape& run, const Workload& work, bool recompute);
// Of a process that computes on a GPU: the weights are on the host while they are read and written,
// all else is on the device (device_forecast.h).
MemoryForecast forecast_memory_beside_device(const RunShape& run);

// Passes through a two-layer BERT make libraries and threads take the memory that they keep at
// work: generated kernels, packed operands, stacks, some of it 20 MiB for every thread. The
// micro-batches have the run's largest sizes, or what a bounded memory allows. The passes' own
// memory is freed.
void probe_memory(Backend& backend, EncoderConfig config, Head head, int64_t tensor_shards,
                  const Workload& work, bool recompute);

// The parts of the model that a planned run's processes have, and the memory of all of them.
class PlannedParts {
 public:
  // Of resolved options, on the processes of one host. Error(usage) where they cannot have the
  // layout. `backend` and `samples` must outlive this.
  PlannedParts(const TrainOptions& options, const EncoderConfig& config, Head head,
               const Layout& layout, Backend& backend, const SampleView& samples);

  bool whole() const { return layout_.pp() * layout_.tp() == 1; }
  // Of rank 0, which reads the data.
  ModelPart first() const { return part_of(split_, layout_, *options_.tensor_shards, 0); }
  const Layout& layout() const { return layout_; }

  // What each process needs and all together; numbers but those of the part are the same for all.
  // `micro_batches`, where not 0, and `tokens` stand in for the run's. The memory is rank 0's.
  MemoryForecast forecast(const RunFacts& facts, const Workload& work, int64_t micro_batches,
                          int64_t tokens, bool recompute) const;
  // Of a process that computes on a GPU, which has the whole model.
  MemoryForecast forecast_beside_device(const RunFacts& facts) const;

 private:
  // Of a rank that keeps activations in `slots` slots. A null `work` stands for a GPU.
  MemoryForecast forecast_of(int rank, const RunFacts& facts, int slots, const Workload* work,
                             bool recompute) const;

  TrainOptions options_;
  EncoderConfig config_;
  Head head_;
  Layout layout_;
  StageSplit split_;
  Backend& backend_;
  SampleView samples_;
};

}  // namespace finetune
