// bench step: throughput of training steps on random weights and samples. It runs the program's own
// TrainingStep (dropout, clipping, AdamW) on a profiling backend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "model/config.h"
#include "ops/profiling_backend.h"
#include "tasks/registry.h"

namespace finetune {

constexpr int64_t kMostStepSequences = 65536;  // since many batches are in memory

struct StepBenchOptions {
  std::string shape = "minilm";    // named_shape(), or a directory with config.json
  std::string lengths = "bank";    // length_distribution()
  std::string task;                // a task's name; empty: task_of_lengths()
  int64_t batch_size = 0;          // 0: 8 for a head on every token, else 32
  int64_t steps = 0;               // timed steps; 0: 5 seconds, at least 3 steps
  int64_t threads = 0;             // 0: all cores
  std::string device = "auto";     // auto, cpu, cuda; resolved for bench_step and bench_ops
  std::string precision = "auto";  // auto, fp32, bf16
  int64_t micro_batch_tokens = 0;  // 0: train's default
  int64_t virtual_shards = 0;      // 0: the number of processes
  int64_t tensor_shards = 1;
  bool recompute = false;
  Clock clock = Clock::wall;  // cpu: with one thread only
};

// The device's peak rates, from matmul_rate.h and ops/cpu/machine_peaks.h or ops/device_peaks.h.
struct MachinePeaks {
  std::optional<double> matmul;  // flop/s; nothing without a yardstick
  double memory = 0;             // byte/s
};

struct StepBenchResult {
  std::string shape, lengths, task, backend, device;
  DType precision = DType::f32;
  int64_t batch_size = 0;
  int64_t threads = 0;
  int64_t processes = 1;
  int64_t virtual_shards = 1, tensor_shards = 1;
  int64_t parameters = 0;
  std::vector<double> step_seconds;  // timed steps in order
  double samples = 0;                // in all timed steps
  double tokens = 0;
  double communication_seconds = 0;  // waits and transfers of all timed steps
  Clock clock = Clock::wall;
  // The operations of the timed steps. An asynchronous device runs further steps for it, at most
  // as many, and waits for each operation.
  Profile profile;
  double profiled_steps = 0, profiled_seconds = 0, profiled_tokens = 0;
  double peak_memory_mb = 0;         // reached by the steps, without memory to measure the peaks
  double device_peak_memory_mb = 0;  // in the device's own memory; 0 on the CPU
  // Memory: the better of the rates before and after the steps. Products: on the CPU the mean of
  // the measurements between steps, on a device the best.
  MachinePeaks peaks;
};

// Collective: every process computes its shards of the batch.
StepBenchResult bench_step(const StepBenchOptions& options, Communicator& comm);

// The config of --shape. Error(usage) for a name that is neither a shape nor a directory.
EncoderConfig shape_config(const std::string& shape);
// Error(usage) for a clock that does not suit the threads or the device.
void check(const StepBenchOptions& options);
void check_clock(Clock clock, int64_t threads);
TaskKind task_kind(const StepBenchOptions& options);
int64_t resolved_batch_size(const StepBenchOptions& options);
// Measures again on the options' device and keeps the better values.
void keep_best(MachinePeaks& peaks, const StepBenchOptions& options, DType precision);

}  // namespace finetune
