// bench layout: measures a layout's traffic, memory and waits, beside the formulas of plan. It
// trains some steps on random weights and samples with the program's own session, links and sums.
// Only processor time is measured: wall time of processes that share cores says nothing about a
// layout's speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/options/train_options.h"
#include "train/plan/layout_forecast.h"

namespace finetune {

struct LayoutBenchOptions {
  std::string shape = "minilm";  // as in bench step
  int64_t length = 128;          // tokens of every sample
  int64_t steps = 3;             // recorded steps, after one unrecorded step; all on the same batch
  std::string task = "classification";
  // Only options whose rows in the option table name bench_layout have an effect.
  TrainOptions train;
};

// A process's memory in bytes. A shared page counts in equal parts for the processes that map it.
// Replicas on one host touch unequal numbers of these pages, so each has the mean of them all.
struct ProcessMemory {
  int64_t rank = 0, host = 0;
  Coordinates at;
  int64_t parameters = 0;  // count of its parameters
  // Forecast by plan; memory shared by a host's replicas is divided among them.
  int64_t weights = 0, gradients = 0, moments = 0, activations = 0;
  int64_t program = 0;   // measured before the model exists
  int64_t measured = 0;  // after the steps
  int64_t formula = 0;   // plan --world's number, for a device that shares no memory

  int64_t model() const { return weights + gradients + moments + activations; }
  // The forecast's relative error over everything but the program.
  double difference() const {
    const double held = double(measured - program);
    return held > 0 ? (double(model()) - held) / held : 0;
  }
};

struct LayoutBenchResult {
  std::string shape, backend;
  LayoutRun run;
  std::vector<std::string> hosts;  // names
  int64_t steps = 0, threads = 0;
  StepBytes counted, formula;  // sums over all processes, per step
  bool counts_divide = true;   // every step moved the same number of bytes
  std::vector<ProcessMemory> memory;
  // Shares of time in which stages wait: with the measured processor time of passes, with the
  // arithmetic of layers, and with equally long passes.
  double recorded_bubble = 0, forecast_bubble = 0, formula_bubble = 0;
};

// Collective; only rank 0 gets the whole result. Throws the same Error(usage), Error(model) and
// Error(device) as train.
LayoutBenchResult bench_layout(const LayoutBenchOptions& options, Communicator& comm);

}  // namespace finetune
