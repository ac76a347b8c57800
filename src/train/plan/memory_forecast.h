// Forecasts a run's memory. Formulas give weights, gradients, moments and activations from the
// model's shape and the run's micro-batches. Program and data are measured in this process.
// Untouched pages cost nothing, so the largest micro-batch that will occur counts, not the largest
// that fits the buffers.
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

// What all processes of a run have in common.
struct RunFacts {
  int lowest_layer = 0;
  std::vector<bool> words{};  // rows of the word embedding that occur in the data
  int64_t weight_file_bytes = 0;
  // Measured resident memory: of the running program, of file pages in that, and what reading the
  // data adds.
  int64_t program_bytes = 0, program_file_bytes = 0, data_bytes = 0;
};

// A process of the run, whatever its micro-batches are.
struct RunShape {
  const ParameterTable& table;
  const Encoder& encoder;
  RunFacts facts{};
  int64_t shards = 1, processes = 1;
  int64_t slots = 1;  // of activations in training (Encoder::reserve)
  // The processes of this host, if there are several hosts; else all.
  std::optional<IndexRange> here = std::nullopt;
  bool checkpoints = true;  // they read all moments
  bool alone = true;        // no other process has another part of the model
  // With a masked head, the share of tokens that are scored. Activations have room for all tokens.
  double scored_share = 1;

  IndexRange local() const { return here.value_or(IndexRange{0, processes}); }
};

// In bytes, for one process: on a host with several, the one that reads the data (rank 0).
struct MemoryForecast {
  int64_t weights = 0;
  int64_t gradients = 0;    // in all arenas that this process touches
  int64_t optimizer = 0;    // m and v
  int64_t activations = 0;  // with the micro-batch
  int64_t data = 0;         // vocabulary, texts and tokens
  int64_t program = 0;      // with libraries, threads and packed operands
  int64_t shared = 0;       // weights, gradients and moments of all processes of the host
  int64_t peak = 0;         // forecast of peak_memory_mb
  int64_t host = 0;         // all processes; shared memory counts once
  int64_t common = 0;       // of `host`: shared by processes with different parts of the model
};

MemoryForecast forecast_memory(const RunShape& run, const Workload& work, bool recompute);
// The same for a process that computes on a GPU: the host has the weights only while they are read
// and written; all else is on the device (device_forecast.h).
MemoryForecast forecast_memory_beside_device(const RunShape& run);

// Runs passes through a two-layer BERT, so that libraries and threads take the memory that they
// keep during work: generated kernels, packed operands, stacks, up to 20 MiB per thread. The
// micro-batches have the run's largest sizes, or are cut to a memory limit. The memory of the
// passes is freed.
void probe_memory(Backend& backend, EncoderConfig config, Head head, int64_t tensor_shards,
                  const Workload& work, bool recompute);

// The parts of the model in the processes of a planned run, and the memory of all processes.
class PlannedParts {
 public:
  // Takes resolved options, for the processes of one host. Error(usage) if they cannot have this
  // layout. `backend` and `samples` must outlive this.
  PlannedParts(const TrainOptions& options, const EncoderConfig& config, Head head,
               const Layout& layout, Backend& backend, const SampleView& samples);

  bool whole() const { return layout_.pp() * layout_.tp() == 1; }
  // The part of rank 0, which reads the data.
  ModelPart first() const { return part_of(split_, layout_, *options_.tensor_shards, 0); }
  const Layout& layout() const { return layout_; }

  // The memory of rank 0; `host` is the sum over all processes. `facts` and `work` are the same for
  // all processes. `micro_batches`, if not 0, and `tokens` replace the run's.
  MemoryForecast forecast(const RunFacts& facts, const Workload& work, int64_t micro_batches,
                          int64_t tokens, bool recompute) const;
  // For a process that computes on a GPU and has the whole model.
  MemoryForecast forecast_beside_device(const RunFacts& facts) const;

 private:
  // The memory of a rank with `slots` activation slots. A null `work` stands for a GPU.
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
