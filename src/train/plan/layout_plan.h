// Forecasts layouts by formula: those that a number of processes can have, or one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/options/option_row.h"
#include "train/options/train_options.h"
#include "train/plan/layout_forecast.h"

namespace finetune {

// The options of `plan --world` that train does not have.
struct FormulaOptions {
  std::optional<int64_t> world;  // if given, plan uses formulas
  int64_t hosts = 1;
  std::string shape;
  std::optional<int64_t> length;  // none: --max-length, else 512 or the model's maximum
  std::string device_memory = "80G";
  double flops = 100;              // TFLOP/s
  double memory_bandwidth = 1500;  // GB/s, as in the next line
  double link_bandwidth = 100, host_bandwidth = 50, offload_bandwidth = 20;
  double layer_latency = 50, link_latency = 10, host_latency = 30;  // microseconds
};

// The rows of these options.
using FormulaOption = OptionRow<FormulaOptions>;
std::span<const FormulaOption> formula_options();

struct LayoutForecast {
  LayoutRun run;
  std::vector<StageMemory> stages;
  int largest = 0;  // the stage that needs most
  StepForecast step;
  bool fits = false;

  const StageMemory& most() const { return stages[size_t(largest)]; }
};

struct LayoutPlan {
  LayoutForecast chosen;
  // Without --tp and --pp: all possible layouts, first those that fit, the fastest first. `chosen`
  // is then the first of them.
  std::vector<LayoutForecast> all;
  int64_t parameters = 0;     // of the whole model
  int64_t device_memory = 0;  // bytes
  Rates rates;
};

// Error(usage) naming the numbers for an impossible request; Error(model) for a bad config.
LayoutPlan plan_layout(const TrainOptions& train, const FormulaOptions& formula);

// "40G", "1.5T": powers of 1000; "40GiB": of 1024. Error(usage) naming `option`.
int64_t parse_size(std::string_view text, std::string_view option);

// Error(usage) naming the first of these options that does not have its default: without --world
// they have no effect.
void refuse_without_world(const FormulaOptions& formula);

// A layout's forecast as text for people and as JSON.
std::string layout_text(const LayoutPlan& plan);
std::string layout_plan_json(const LayoutPlan& plan);  // one line

}  // namespace finetune
