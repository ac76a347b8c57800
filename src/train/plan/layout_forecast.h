// Memory, bytes and time of a process of a layout, by formula from shapes alone. Pure.
// H hidden, I intermediate, t tensor ranks, d replicas, m micro-batches of a replica, T tokens of
// one. Not counted are the driver's context and what communication and single operations buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/numeric/dtype.h"
#include "distributed/layout/stage_split.h"
#include "distributed/pipeline/pipeline_schedule.h"

namespace finetune {

// Micro-batches of a virtual shard where a run with several stages does not say: four a stage.
int64_t default_micro_batches(const Layout& layout, int64_t virtual_shards);

// What the formulas speak of.
struct LayoutRun {
  EncoderConfig config;
  Head head;
  Layout layout;
  StageSplit split;
  PipelineKind schedule = PipelineKind::one_f_one_b;
  std::vector<int> first_rank;  // of each host, and the world's size last
  int64_t tensor_shards = 1;
  int64_t virtual_shards = 1;
  int64_t batch_size = 1, length = 1;  // samples of all replicas; tokens of a sample
  int64_t micro_batches = 1;           // of a virtual shard
  int64_t micro_batch_tokens = 1;      // T of the largest
  DType compute = DType::f32;
  bool recompute = false;
  int64_t horizon = 0;  // layers whose checkpointed inputs are on the device; 0: no offload
  std::optional<int64_t> word_rows;  // different words of a step; none: as many as there can be

  IndexRange replica_shards() const { return part(virtual_shards, layout.dp(), 0); }  // the most
  int64_t replica_micro_batches() const { return micro_batches * replica_shards().size(); }  // m
  int64_t replica_samples() const;  // of a step
  int64_t replica_tokens() const { return replica_samples() * length; }
  int64_t moving_rows() const {  // of the word embedding
    return word_rows.value_or(std::min(config.vocab_size, batch_size * length));
  }
  PipelineShape pipeline() const;
};

// Bytes of a process of a stage.
struct StageMemory {
  int64_t parameters = 0;     // a count
  int64_t weights = 0;        // fp32, and in bf16 the rounded matrices
  int64_t gradients = 0;      // an arena for each subtree that its virtual shards need
  int64_t moments = 0;        // m and v of its part of the replicas' (ZeRO stage 1)
  int64_t whole_moments = 0;  // the same if each replica had all of them
  int64_t kept = 0;           // activations of micro-batches in flight
  int64_t working = 0;        // of the layer that is computed, and gradients
  int64_t offloaded = 0;      // in the host's memory

  int64_t total() const { return weights + gradients + moments + kept + working; }
};

StageMemory stage_memory(const LayoutRun& run, int stage);

// What processes hand to each other in a step, in bytes of fp32, each value as often as there are
// processes that get it: through memory of a host as well as between hosts. So the formulas do not
// know where processes are. A counter that says as much lies at each place where it happens.
//   tensor    a sum of (R, H) between t tensor ranks: of its subtree each hands all but its share
//             of the elements to those that add the others, then its share of the sum to all:
//             2 (t - 1) R H values in all. A layer has four such sums of R tokens, two forward, two
//             backward, and two more where it is computed again; the last one under a sequence head
//             has R sequences in all but the gradient of keys and values. With --recompute the last
//             layer of a chunk is not computed again where the stage has one slot.
//   pipeline  (T, H) of each micro-batch at each boundary of blocks, up and down, of each tensor
//             rank.
//   data      each replica hands all but what it owns of its gradient to the owners, and what it
//             owns of the weights to all: 2 (d - 1) N values in all, with N the arena of the part
//             (its gaps as well) but of the word embedding the rows of the batch alone.
// Exact where nothing is frozen, the virtual shards are a multiple of the replicas, and a tensor
// rank's tensor shards, a replica's virtual shards and those of a host are powers of two: else some
// hand on more than one subtree.
struct StepBytes {
  int64_t tensor = 0, pipeline = 0, data = 0;
};

StepBytes step_bytes(const LayoutRun& run);  // of all processes together

// The same of a process of a stage, of the replica that has most, on average over its axis.
struct AxisBytes {
  int64_t tensor = 0;
  int64_t boundary = 0;  // between two neighbouring stages, activations and gradients
  int64_t pipeline = 0;
  int64_t data = 0;  // gradients, then weights
};

AxisBytes axis_bytes(const LayoutRun& run, int stage);

// Share of the time in which stages wait if all are equally long: (p - 1) / (C m + p - 1).
double bubble(int64_t stages, int64_t chunks, int64_t micro_batches);

// Of a machine. Bytes and operations a second, latencies in seconds.
struct Rates {
  double flops = 100e12;             // of a device, as reached in training
  double layer_latency = 50e-6;      // of a layer's pass beside its arithmetic; backward twice
  double memory_bandwidth = 1500e9;  // of a device
  double link_bandwidth = 100e9;     // of a device to others of its host, one way
  double link_latency = 10e-6;
  double host_bandwidth = 50e9;  // of a host's network one way, shared by its processes
  double host_latency = 30e-6;
  double offload_bandwidth = 20e9;  // of a device to its host's memory
};

struct StepForecast {
  double pipeline = 0;           // forward and backward passes, and messages between stages
  double tensor = 0;             // of it: sums between tensor ranks, in the slowest stage
  double data = 0;               // gradients beyond the last backward pass, then weights
  double update = 0;             // of the part of the parameters that a process owns
  double bubble = 0;             // share of it in which stages wait
  bool simulated = true;         // not where there are too many passes: then by formula
  std::vector<double> computes;  // of each stage: a micro-batch forward and backward

  double total() const { return pipeline + data + update; }
};

StepForecast step_forecast(const LayoutRun& run, const Rates& rates);

}  // namespace finetune
