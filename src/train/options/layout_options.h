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
         "order of replicas, stages and tensor ranks over the processes, host by host, the last "
         "letter fastest: cluster (DPT), spread (TPD), or a permutation of D, P and T",
         "", "WORD"},
        o.placement);
  visit({"tensor-shards", layout, result, between(1, kMostRanks),
         "compute each layer in V parts, on any number of tensor ranks that divides V (default: "
         "--tp)",
         "", "V"},
        o.tensor_shards);
  visit({"micro-batches", layout, result, between(1, 1 << 24),
         "cut each virtual shard into M micro-batches, in place of --micro-batch-tokens (default "
         "with --pp: about four a stage)",
         "", "M"},
        o.micro_batches);
  visit({"pipeline-schedule", layout, run,
         "1f1b goes backward as soon as it can (SageMaker's interleaved), gpipe after all forward "
         "passes (simple), interleaved has several chunks of layers a stage (Megatron's)",
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
      "with --recompute, on a GPU: inputs of layers wait in the host's memory, and come back this "
      "many layers ahead of the backward pass (default: 4; SageMaker counts its pipeline's tasks)",
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
