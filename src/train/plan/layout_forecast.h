// Memory, bytes and time of a process of a layout, by formula from shapes alone. H is the hidden, I
// the intermediate size; t tensor ranks, d replicas, m micro-batches of a replica, T tokens of
// each. The driver's context and buffers of communication and operations are not counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/numeric/dtype.h"
#include "distributed/layout/stage_split.h"
#include "distributed/pipeline/pipeline_schedule.h"

namespace finetune {

// The default number of micro-batches of a virtual shard with several stages: four per stage.
int64_t default_micro_batches(const Layout& layout, int64_t virtual_shards);

// The inputs of the formulas.
struct LayoutRun {
  EncoderConfig config;
  Head head;
  Layout layout;
  StageSplit split;
  PipelineKind schedule = PipelineKind::one_f_one_b;
  std::vector<int> first_rank;  // of each host; then the number of processes
  int64_t tensor_shards = 1;
  int64_t virtual_shards = 1;
  int64_t batch_size = 1, length = 1;  // samples of a step; tokens of a sample
  int64_t micro_batches = 1;           // of a virtual shard
  int64_t micro_batch_tokens = 1;      // T of the largest one
  DType compute = DType::f32;
  bool recompute = false;
  int64_t horizon = 0;               // layers whose inputs stay on the device; 0: no offload
  std::optional<int64_t> word_rows;  // different words in a step; none: the maximum

  IndexRange replica_shards() const { return part(virtual_shards, layout.dp(), 0); }  // the most
  int64_t replica_micro_batches() const { return micro_batches * replica_shards().size(); }  // m
  int64_t replica_samples() const;  // of a step, in the largest replica
  int64_t replica_tokens() const { return replica_samples() * length; }
  int64_t moving_rows() const {  // rows of the word embedding
    return word_rows.value_or(std::min(config.vocab_size, batch_size * length));
  }
  PipelineShape pipeline() const;
};

// Bytes of one process of a stage.
struct StageMemory {
  int64_t parameters = 0;     // number of elements
  int64_t weights = 0;        // fp32, and the rounded matrices if compute is bf16
  int64_t gradients = 0;      // an arena for each subtree that its virtual shards need
  int64_t moments = 0;        // m and v that this process owns (ZeRO stage 1)
  int64_t whole_moments = 0;  // m and v without ZeRO
  int64_t kept = 0;           // activations of the micro-batches in flight
  int64_t working = 0;        // of the layer being computed, and gradients
  int64_t offloaded = 0;      // in the host's memory

  int64_t total() const { return weights + gradients + moments + kept + working; }
};

StageMemory stage_memory(const LayoutRun& run, int stage);

// Bytes that all processes together send to each other in a training step, where each value has
// four. A value that is sent to n processes counts n times, through a host's memory as well as over
// a network, so the numbers do not depend on which host a process runs on. The program counts what
// it sends in the same way.
//   tensor    t tensor ranks add their partial results. Each of them adds one part of the rows: it
//             receives this part from the others and sends its sum to them. A sum of (R, H) so
//             takes 2 (t - 1) R H values. A layer has four sums with a row for each token, two in
//             the forward and two in the backward pass, and two more if it is recomputed. Under a
//             sequence head, sums of the last layer have a row for each sequence, except for the
//             gradient of keys and values. With --recompute, a stage that keeps one micro-batch
//             does not recompute the last layer of a chunk.
//   pipeline  For each micro-batch and each boundary between two stages' layers, each tensor rank
//             sends (T, H) values up, and their gradient down.
//   data      Each replica sends each parameter's gradient to the replica that updates it, which
//             sends the new weights to all: 2 (d - 1) N values for d replicas. N is the number of
//             floats in the memory of the part's gradients, with the gaps between tensors; of the
//             word embedding, only rows of words in the batch count.
// Exact if no layer is frozen and the virtual shards are a multiple of the replicas, and if tensor
// shards per tensor rank and virtual shards per replica and per host are powers of two. Otherwise
// some processes send more than one partial sum each.
struct StepBytes {
  int64_t tensor = 0, pipeline = 0, data = 0;
};

StepBytes step_bytes(const LayoutRun& run);  // of all processes together

// The same for a process of a stage in the largest replica, on average over its axis.
struct AxisBytes {
  int64_t tensor = 0;
  int64_t boundary = 0;  // between two neighbouring stages, both directions
  int64_t pipeline = 0;
  int64_t data = 0;  // gradients, then weights
};

AxisBytes axis_bytes(const LayoutRun& run, int stage);

// Share of the time that equally long stages wait: (p - 1) / (C m + p - 1).
double bubble(int64_t stages, int64_t chunks, int64_t micro_batches);

// The speed of the machines. Bytes and operations per second, latencies in seconds.
struct Rates {
  double flops = 100e12;             // of a device, as reached in training
  double layer_latency = 50e-6;      // added to a forward pass of a layer; twice that backward
  double memory_bandwidth = 1500e9;  // of a device
  double link_bandwidth = 100e9;     // between a device and others of its host, one way
  double link_latency = 10e-6;
  double host_bandwidth = 50e9;  // of a host's network, one way, shared by its processes
  double host_latency = 30e-6;
  double offload_bandwidth = 20e9;  // from a device to its host's memory
};

struct StepForecast {
  double pipeline = 0;           // forward and backward passes, and messages between stages
  double tensor = 0;             // of `pipeline`: sums between tensor ranks, slowest stage
  double data = 0;               // gradients beyond the last backward pass, then weights
  double update = 0;             // of the parameters that a process owns
  double bubble = 0;             // share of `pipeline` in which stages wait
  bool simulated = true;         // false: too many passes, so by formula
  std::vector<double> computes;  // per stage: one micro-batch forward and backward

  double total() const { return pipeline + data + update; }
};

StepForecast step_forecast(const LayoutRun& run, const Rates& rates);

}  // namespace finetune
