// Forecasts of memory, part by part.
#include "train/layout/planned_parts.h"

#include "model/tensor_sum.h"
#include "train/layout/stages.h"

namespace finetune {

PlannedParts::PlannedParts(const TrainOptions& options, const EncoderConfig& config, Head head,
                           const Layout& layout, Backend& backend, const SampleView& samples)
    : options_(options),
      config_(config),
      head_(head),
      layout_(layout),
      split_(stages_of(options, config, head.kind)),
      backend_(backend),
      samples_(samples) {}

MemoryForecast PlannedParts::forecast_of(int rank, const Common& common, int slots,
                                         const Forecast& forecast) const {
  const ModelPart part = part_of(split_, layout_, *options_.tensor_shards, rank);
  const ParameterTable table(config_, head_, part);
  const auto sum = make_solo_tensor_sum(part.tensor_shards);  // nothing is added
  const Encoder encoder(backend_, config_, table, part, sum.get());
  const RunShape run{.table = table,
                     .encoder = encoder,
                     .lowest_layer = common.lowest_layer,
                     .shards = *options_.virtual_shards,
                     .processes = layout_.dp(),
                     .words = common.words,
                     .weight_file_bytes = common.weight_file_bytes,
                     .program_bytes = common.program_bytes,
                     .program_file_bytes = common.program_file_bytes,
                     .data_bytes = common.data_bytes,
                     .slots = slots,
                     .alone = whole(),
                     .scored_share = options_.mask_probability};
  return forecast(run);
}

MemoryForecast PlannedParts::forecast(const Common& common, const Workload& work,
                                      int64_t micro_batches, int64_t tokens, bool recompute) const {
  TrainOptions options = options_;
  options.micro_batches = micro_batches > 0 ? std::optional(micro_batches) : std::nullopt;
  options.micro_batch_tokens = tokens;
  const PipelineShape shape =
      pipeline_shape(options, config_, split_, most_micro_batches(options, samples_));
  const int64_t shards = part(*options_.virtual_shards, layout_.dp(), 0).size();
  MemoryForecast first;
  for (int rank = 0; rank < layout_.world(); ++rank) {
    if (layout_.at(rank).d != 0) continue;  // counted with the first replica
    const int slots = slots_of_stage(shape, shards, layout_.at(rank).p);
    const MemoryForecast of = forecast_of(rank, common, slots, [&](const RunShape& run) {
      return forecast_memory(run, work, recompute);
    });
    if (rank == 0) {
      first = of;
    } else {
      first.host += of.host - of.common;
    }
  }
  return first;
}

MemoryForecast PlannedParts::forecast_beside_device(const Common& common) const {
  return forecast_of(0, common, 1, forecast_memory_beside_device);
}

}  // namespace finetune
