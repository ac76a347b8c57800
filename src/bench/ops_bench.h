// bench ops: repeats each operation of a training step alone, at that step's sizes.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "core/text/json_value.h"

namespace finetune {

struct OpsBenchResult {
  std::string shape, lengths, backend, device;
  int64_t batch_size = 0;
  int64_t tokens = 0;         // in the batch
  std::vector<OpLine> lines;  // seconds: the median call
  MachinePeaks peaks;
};

// Uses shape, lengths, batch size, device, precision and threads of the options.
OpsBenchResult bench_ops(const StepBenchOptions& options);

JsonObject to_json(const OpsBenchResult& result);
std::string to_text(const OpsBenchResult& result);

}  // namespace finetune
