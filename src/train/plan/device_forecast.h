// The memory that a training run takes on a GPU, before it is there. All buffers there are
// allocated once, for the largest micro-batch that there is room for, and stay whole whether
// somebody touches them or not, so everything follows by formula. Not counted is what the driver
// and NCCL allocate beside them (context, kernels, CUDA graphs, channels): nobody says how much.
#pragma once

#include <cstdint>
#include <optional>

#include "core/numeric/packed_batch.h"
#include "data/plan.h"
#include "model/encoder.h"
#include "model/model_part.h"
#include "model/parameters.h"
#include "ops/backend.h"

namespace finetune {

// What a process has, whatever its micro-batches.
struct DeviceRun {
  const EncoderConfig& config;
  const ParameterTable& table;
  SampleView training;
  std::optional<SampleView> evaluation;
  int64_t batch_size = 1;
  int64_t virtual_shards = 1;
  IndexRange shards{0, 1};  // this process's
  DType compute = DType::f32;
  int64_t processes = 1;  // with a GPU each
  int lowest_layer = 0;
  int64_t bucket_bytes = int64_t{25} << 20;
  DType wire = DType::f32;          // of gradients between them
  bool library_attention = false;   // ops/backend.h
  bool second_stream = false;       // the same
  int64_t micro_batches = 0;        // of a shard in training; 0: by their tokens
  std::optional<ModelPart> part{};  // of a pipeline's stage; without: the whole model
  int64_t slots = 1;                // of its activations (Encoder::reserve)
  int64_t horizon = 0;              // of inputs that wait on the host, with recomputation alone
  BatchSize evaluation_limits{};    // of micro-batches, for who has not `evaluation`; zeros: none
  // Where hidden states and partial sums go from device to device: outboxes of a stage in training
  // and in evaluation, and who of how many tensor ranks this is.
  int outboxes = 0, evaluation_outboxes = 0;
  int tensor_rank = 0, tensor_ranks = 1;
  int64_t device_bytes = 0;            // its whole memory, which decides what is kept; 0: the least
  bool keeps_attention_masks = false;  // ops/backend.h
};

// Bytes.
struct DeviceForecast {
  int64_t weights = 0;      // and the rounded copy that products read
  int64_t gradients = 0;    // with what comes from other processes
  int64_t optimizer = 0;    // m and v
  int64_t activations = 0;  // the micro-batch, and what of them goes to other devices
  int64_t scratch = 0;      // of the operations: rounded operands, partial sums, masks
  int64_t offloaded = 0;    // in memory of the host, and no part of total()

  int64_t total() const { return weights + gradients + optimizer + activations + scratch; }
};

// Bytes of the rounded weights that products read; 0 in fp32.
int64_t rounded_weight_bytes(const ParameterTable& table, DType compute);

DeviceForecast forecast_device_memory(const DeviceRun& run, int64_t micro_batch_tokens,
                                      bool recompute);

// Of what is free when a run begins, how much it can have: the driver loads kernels later.
int64_t usable_device_memory(const DeviceMemory& at_start);

// The largest --micro-batch-tokens, up to `most`, of a run that fits into `bytes`; 0: none does, or
// they do not decide.
int64_t fitting_micro_batch_tokens(const DeviceRun& run, int64_t most, bool recompute,
                                   int64_t bytes);

// What to say where a run's memory has turned out to be too small: what it needs, what is free,
// which setting would fit. `at_start`: before the run allocated anything; `now`: as it failed.
Error too_little_device_memory(const DeviceRun& run, int64_t micro_batch_tokens, bool recompute,
                               const DeviceMemory& at_start, const DeviceMemory& now);

}  // namespace finetune
