// Results of benchmarks as a table for people and as JSON for scripts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/step_bench.h"
#include "core/text/json_value.h"

namespace finetune {

// One operation of a profile: the mean per step, or per call.
struct OpLine {
  OpKey key;
  double calls = 0;
  double seconds = 0;
  std::optional<double> share;  // fraction of the step's time
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

double total_seconds(const StepBenchResult& result);
double flops_per_token(const StepBenchResult& result);
std::string rate_text(const MachinePeaks& peaks);  // "123.4 GFLOP/s", or why it is missing

// The whole report; scripts rely on these names.
JsonObject to_json(const StepBenchResult& result);
std::string to_text(const StepBenchResult& result);

JsonObject to_json(const OpLine& line);
std::string table_of(const std::vector<OpLine>& lines, const MachinePeaks& peaks,
                     const std::string& time_heading);

}  // namespace finetune
