// Options of `plan --world` that train does not have.
#include "train/plan/layout_plan.h"

namespace finetune {
namespace {

using enum OptionRole;

constexpr std::string_view kFormula = "By formula", kRates = "Rates, with --world";
constexpr OptionRange kRate{.least = 0, .most = 1e9, .above_least = true};
constexpr OptionRange kLatency = between(0, 1e9);

const FormulaOption kRows[] = {
    {{.name = "world",
      .group = kFormula,
      .role = session,
      .common = commands::all,
      .help = "forecast a layout of N processes by formula, without data, weights or mpirun",
      .range = between(1, kMostRanks)},
     &FormulaOptions::world},
    {{.name = "hosts",
      .group = kFormula,
      .role = session,
      .help = "hosts that the processes are spread over",
      .range = between(1, kMostRanks)},
     &FormulaOptions::hosts},
    {{.name = "shape",
      .group = kFormula,
      .role = session,
      .help = "tiny, minilm, base, large, or LAYERS,HIDDEN,HEADS,INNER[,VOCABULARY[,POSITIONS]]",
      .value = "SHAPE"},
     &FormulaOptions::shape},
    {{.name = "length",
      .group = kFormula,
      .role = session,
      .help = "tokens of a sample (default: --max-length, else 512 or the model's longest input)",
      .range = between(1, 1 << 16)},
     &FormulaOptions::length},
    {{.name = "device-memory",
      .group = kFormula,
      .role = session,
      .common = commands::all,
      .help = "memory of each process's device: 40G, 24GiB",
      .value = "SIZE"},
     &FormulaOptions::device_memory},
    {{.name = "flops",
      .group = kRates,
      .role = session,
      .help = "TFLOP/s of a device, as reached in training",
      .range = kRate},
     &FormulaOptions::flops},
    {{.name = "layer-latency",
      .group = kRates,
      .role = session,
      .help = "microseconds of a layer's forward pass beside its arithmetic",
      .range = kLatency},
     &FormulaOptions::layer_latency},
    {{.name = "memory-bandwidth",
      .group = kRates,
      .role = session,
      .help = "GB/s of a device's memory",
      .range = kRate},
     &FormulaOptions::memory_bandwidth},
    {{.name = "link-bandwidth",
      .group = kRates,
      .role = session,
      .help = "GB/s from a device to others of its host",
      .range = kRate},
     &FormulaOptions::link_bandwidth},
    {{.name = "link-latency",
      .group = kRates,
      .role = session,
      .help = "microseconds of a message on a host",
      .range = kLatency},
     &FormulaOptions::link_latency},
    {{.name = "host-bandwidth",
      .group = kRates,
      .role = session,
      .help = "GB/s of a host's network, one way, which its processes share",
      .range = kRate},
     &FormulaOptions::host_bandwidth},
    {{.name = "host-latency",
      .group = kRates,
      .role = session,
      .help = "microseconds of a message between hosts",
      .range = kLatency},
     &FormulaOptions::host_latency},
    {{.name = "offload-bandwidth",
      .group = kRates,
      .role = session,
      .help = "GB/s from a device to its host's memory",
      .range = kRate},
     &FormulaOptions::offload_bandwidth},
};

}  // namespace

std::span<const FormulaOption> formula_options() {
  return kRows;
}

}  // namespace finetune
