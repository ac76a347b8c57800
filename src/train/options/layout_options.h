// The options of a layout: replicas, stages, tensor ranks, their order and the pipeline's schedule.
// Declared once, as those of train are (options.h). `finetune plan --world` knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "distributed/pipeline/pipeline_schedule.h"
#include "train/options/options.h"

namespace finetune {

struct LayoutOptions {
  std::optional<int64_t> tp, pp;
  std::string placement = "cluster";
  std::optional<int64_t> tensor_shards;  // V; none: tp
  std::optional<int64_t> micro_batches;  // M, of a virtual shard
  std::string pipeline_schedule = "1f1b";
  std::optional<int64_t> chunks;  // of a stage; none: kDefaultChunks where interleaved
  std::string stages = "auto";
  std::optional<int64_t> offload_activations;  // the horizon
};

inline constexpr int64_t kDefaultChunks = 2;
inline constexpr int64_t kDefaultHorizon = 4;
constexpr int64_t kMostRanks = 65536;

// As for_each_option (options.h).
template <typename Options, typename Visit>
void for_each_layout_option(Options& o, Visit&& visit) {
  using enum OptionRole;
  constexpr std::string_view layout = "Layout";
  visit({"tp", layout, run, between(1, kMostRanks),
         "tensor ranks: processes that share each layer's heads and feed-forward columns"},
        o.tp);
  visit({"pp", layout, run, between(1, kMostRanks),
         "pipeline stages: processes that have some of the layers each"},
        o.pp);
  visit({"placement", layout, run,
         "cluster (DPT), spread (TPD) or another order of D, P and T over processes, the last "
         "fastest",
         "", "WORD"},
        o.placement);
  visit({"tensor-shards", layout, result, between(1, kMostRanks),
         "compute each layer in V parts, on any --tp that divides V (default: --tp)", "", "V"},
        o.tensor_shards);
  visit({"micro-batches", layout, result, between(1, 1 << 24),
         "micro-batches of each virtual shard (default with --pp: about four a stage)", "", "M"},
        o.micro_batches);
  visit({"pipeline-schedule", layout, run, "order of a stage's forward and backward passes",
         kPipelineWords},
        o.pipeline_schedule);
  visit({"chunks", layout, run, between(1, 4096),
         "chunks of layers of a stage, interleaved alone (default: 2)"},
        o.chunks);
  visit(
      {"stages", layout, run,
       "layers of each stage, or auto: such that the slowest is as fast as can be", "", "auto|7,5"},
      o.stages);
  OptionInfo offload{
      "offload-activations",
      layout,
      run,
      between(1, 4096),
      "with --recompute: inputs of layers wait on the host, back N layers ahead (alone: 4)",
      "",
      "[N]"};
  offload.bare = kDefaultHorizon;
  visit(offload, o.offload_activations);
}

// Error(usage), one line, for values out of range and options that do not go together with each
// other or with `train`'s (--recompute, --device, --micro-batch-tokens). World and model are not
// looked at.
void validate(const LayoutOptions& options, const TrainOptions& train);

}  // namespace finetune
