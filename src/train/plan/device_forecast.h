// Forecasts the memory that a training run takes on a GPU. All buffers there are allocated once,
// for the largest micro-batch, and take their memory whether used or not. So formulas give all but
// what the driver and NCCL allocate (context, kernels, CUDA graphs, channels), which they do not
// tell.
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

// A process and its part of the run, whatever the micro-batches are.
struct DeviceRun {
  const EncoderConfig& config;
  const ParameterTable& table;
  SampleView training;
  std::optional<SampleView> evaluation;
  int64_t batch_size = 1;
  int64_t virtual_shards = 1;
  IndexRange shards{0, 1};  // this process's
  DType compute = DType::f32;
  int64_t processes = 1;  // each has a GPU
  int lowest_layer = 0;
  int64_t bucket_bytes = int64_t{25} << 20;
  DType wire = DType::f32;          // of gradients between processes
  bool library_attention = false;   // ops/backend.h
  bool second_stream = false;       // ops/backend.h
  int64_t micro_batches = 0;        // of a shard in training; 0: --micro-batch-tokens decides
  std::optional<ModelPart> part{};  // of a pipeline stage; none: the whole model
  int64_t slots = 1;                // for activations (Encoder::reserve)
  int64_t horizon = 0;              // layers whose inputs stay on the GPU; 0: no offload
  BatchSize evaluation_limits{};    // of micro-batches, if `evaluation` is not known; zeros: none
  // If hidden states and partial sums go from device to device: the outboxes of a stage in training
  // and in evaluation, this tensor rank, and the number of tensor ranks.
  int outboxes = 0, evaluation_outboxes = 0;
  int tensor_rank = 0, tensor_ranks = 1;
  int64_t device_bytes = 0;  // free at the start, which decides what is kept; 0: the least
  bool keeps_attention_masks = false;  // ops/backend.h
};

// In bytes.
struct DeviceForecast {
  int64_t weights = 0;      // with the rounded copy that products read
  int64_t gradients = 0;    // with buffers for other processes' gradients
  int64_t optimizer = 0;    // m and v
  int64_t activations = 0;  // of the micro-batch, with messages to other devices
  int64_t scratch = 0;      // of the operations: rounded operands, partial sums, masks
  int64_t offloaded = 0;    // in the host's memory; total() leaves it out

  int64_t total() const { return weights + gradients + optimizer + activations + scratch; }
};

// Bytes of the rounded weights that matrix products read; 0 with compute fp32.
int64_t rounded_weight_bytes(const ParameterTable& table, DType compute);

DeviceForecast forecast_device_memory(const DeviceRun& run, int64_t micro_batch_tokens,
                                      bool recompute);

// Bytes of the free memory that a run can use: the driver loads kernels later.
int64_t usable_device_memory(const DeviceMemory& at_start);

// The largest --micro-batch-tokens up to `most` with which the run fits into `bytes`. Returns 0 if
// none fits, or if --micro-batches decides.
int64_t fitting_micro_batch_tokens(const DeviceRun& run, int64_t most, bool recompute,
                                   int64_t bytes);

// The error of a run that ran out of GPU memory: what it needs, what is free, and what would fit.
// `at_start`: memory before the run allocated anything; `now`: after it failed.
Error too_little_device_memory(const DeviceRun& run, int64_t micro_batch_tokens, bool recompute,
                               const DeviceMemory& at_start, const DeviceMemory& now);

}  // namespace finetune
