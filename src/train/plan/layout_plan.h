// Which layouts a number of processes can have, and what each needs: by formula, from options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/options/options.h"
#include "train/plan/layout_forecast.h"

namespace finetune {

// What `plan --world` asks for beside train's options.
struct FormulaOptions {
  std::optional<int64_t> world;  // given: by formula
  int64_t hosts = 1;
  std::string shape;
  std::optional<int64_t> length;  // none: --max-length, else 512, or the model's longest
  std::string device_memory = "80G";
  double flops = 100;              // TFLOP/s
  double memory_bandwidth = 1500;  // GB/s, as the others
  double link_bandwidth = 100, host_bandwidth = 50, offload_bandwidth = 20;
  double layer_latency = 50, link_latency = 10, host_latency = 30;  // microseconds
};

template <typename Options, typename Visit>
void for_each_formula_option(Options& o, Visit&& visit) {
  using enum OptionRole;
  constexpr std::string_view formula = "By formula", rates = "Rates, with --world";
  visit({"world", formula, session, between(1, kMostRanks),
         "forecast a layout of N processes by formula, without data, weights or mpirun"},
        o.world);
  visit({"hosts", formula, session, between(1, kMostRanks),
         "hosts that the processes are spread over"},
        o.hosts);
  visit({"shape", formula, session,
         "tiny, minilm, base, large, or LAYERS,HIDDEN,HEADS,INNER[,VOCABULARY[,POSITIONS]]", "",
         "SHAPE"},
        o.shape);
  visit({"length", formula, session, between(1, 1 << 16),
         "tokens of a sample (default: --max-length, else 512 or the model's longest input)"},
        o.length);
  visit({"device-memory", formula, session, "memory of each process's device: 40G, 24GiB", "",
         "SIZE"},
        o.device_memory);
  constexpr OptionRange rate{.least = 0, .most = 1e9, .above_least = true};
  constexpr OptionRange latency = between(0, 1e9);
  visit({"flops", rates, session, rate, "TFLOP/s of a device, as reached in training"}, o.flops);
  visit({"layer-latency", rates, session, latency,
         "microseconds of a layer's forward pass beside its arithmetic"},
        o.layer_latency);
  visit({"memory-bandwidth", rates, session, rate, "GB/s of a device's memory"},
        o.memory_bandwidth);
  visit({"link-bandwidth", rates, session, rate, "GB/s from a device to others of its host"},
        o.link_bandwidth);
  visit({"link-latency", rates, session, latency, "microseconds of a message on a host"},
        o.link_latency);
  visit({"host-bandwidth", rates, session, rate,
         "GB/s of a host's network, one way, which its processes share"},
        o.host_bandwidth);
  visit({"host-latency", rates, session, latency, "microseconds of a message between hosts"},
        o.host_latency);
  visit({"offload-bandwidth", rates, session, rate, "GB/s from a device to its host's memory"},
        o.offload_bandwidth);
}

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
  // Without --tp and --pp: all layouts there are, those that fit first, the fastest first;
  // `chosen` is the first.
  std::vector<LayoutForecast> all;
  int64_t parameters = 0;     // of the whole model
  int64_t device_memory = 0;  // bytes
  Rates rates;
};

// Error(usage) for whatever is impossible, naming the numbers; Error(model) for a bad config.
LayoutPlan plan_layout(const TrainOptions& train, const FormulaOptions& formula);

// "40G", "1.5T": powers of 1000; "40GiB": of 1024. Error(usage) naming `option`.
int64_t parse_size(std::string_view text, std::string_view option);

// Error(usage) naming the first of these options that has another value than its default: without
// --world none of them has a meaning.
void refuse_without_world(const FormulaOptions& formula);

}  // namespace finetune
