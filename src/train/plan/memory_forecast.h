// The memory of a run before it is there. Weights, gradients, moments and activations follow from
// the model's shape and the micro-batches that the run will have, by formula; program and data are
// measured in the process that asks. Pages that nobody touches cost nothing, so what counts is the
// largest micro-batch that there will be, not the largest one that buffers have room for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/encoder.h"
#include "train/plan/workload.h"

namespace finetune {

// What a run has, whatever its micro-batches.
struct RunShape {
  const ParameterTable& table;
  const Encoder& encoder;
  int lowest_layer = 0;
  int64_t shards = 1, processes = 1;
  std::vector<bool> words;  // rows of the word embedding that the data have
  int64_t weight_file_bytes = 0;
  // Resident, measured: the program once it has worked (memory_probe.h), pages of files among it,
  // and what the data add.
  int64_t program_bytes = 0, program_file_bytes = 0, data_bytes = 0;
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

}  // namespace finetune
