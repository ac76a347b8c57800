// bench layout: what a layout of processes moves, holds and waits for, beside plan's formulas.
// Some steps of training on random weights and samples, with the program's own session, links and
// sums. No time is taken but the processor's: processes that share cores say nothing of a layout's
// speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/options/train_options.h"
#include "train/plan/layout_forecast.h"

namespace finetune {

struct LayoutBenchOptions {
  std::string shape = "minilm";  // as of bench step
  int64_t length = 128;          // tokens of every sample
  int64_t steps = 3;             // recorded ones, after one that is not; all of the same batch
  std::string task = "classification";
  // The options whose rows name bench_layout; others have no effect.
  TrainOptions train;
};

// A process's memory in bytes. Pages that several processes have count a share; of replicas on a
// host, which share unevenly, the mean.
struct ProcessMemory {
  int64_t rank = 0, host = 0;
  Coordinates at;
  int64_t parameters = 0;  // a count, of its part
  // By plan: of the host's replicas this one's share.
  int64_t weights = 0, gradients = 0, moments = 0, activations = 0;
  int64_t program = 0;   // measured before there is a model
  int64_t measured = 0;  // after the steps
  int64_t formula = 0;   // plan --world: of a device that shares nothing

  int64_t model() const { return weights + gradients + moments + activations; }
  // How far the forecast is from what has come to the program.
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
  StepBytes counted, formula;  // of all processes in a step
  bool counts_divide = true;   // every step has moved as much
  std::vector<ProcessMemory> memory;
  // Shares of time in which stages wait: with passes as long as their processor time was, by the
  // layers' arithmetic, and if all were equally long.
  double recorded_bubble = 0, forecast_bubble = 0, formula_bubble = 0;
};

// Collective; rank 0 alone has a whole result. Error(usage), Error(model), Error(device) as train.
LayoutBenchResult bench_layout(const LayoutBenchOptions& options, Communicator& comm);

}  // namespace finetune
