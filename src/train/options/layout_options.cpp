// Checks the options of a layout against each other.
#include "train/options/layout_options.h"

#include "core/error.h"
#include "distributed/layout/layout.h"

namespace finetune {

void validate_pipeline(const TrainOptions& o) {
  parse_placement(o.placement);
  const PipelineKind kind = parse_pipeline_kind(o.pipeline_schedule);
  if (o.chunks && kind != PipelineKind::interleaved) {
    throw usage_error("--chunks ", *o.chunks, " needs --pipeline-schedule interleaved; it is ",
                      name_of(kind));
  }
  if (o.stages != "auto" && !o.pp) {
    throw usage_error("--stages ", in_quotes(o.stages), " needs --pp, the number of stages");
  }
  if (o.micro_batches && o.micro_batch_tokens) {
    throw usage_error("--micro-batches ", *o.micro_batches, " and --micro-batch-tokens ",
                      *o.micro_batch_tokens, " exclude each other: both say where to cut");
  }
}

void validate(const LayoutOptions& o, const TrainOptions& train) {
  for_each_layout_option(o, [](const OptionInfo& info, const std::optional<int64_t>& value) {
    if (value) require_inside(info, *value);
  });
  validate_pipeline(train);
  if (!o.offload_activations) return;
  if (!train.recompute) {
    throw usage_error("--offload-activations ", *o.offload_activations,
                      " needs --recompute: inputs of layers are what is moved");
  }
  if (train.device == "cpu") {
    throw usage_error("--offload-activations ", *o.offload_activations,
                      " is for GPUs: with --device cpu activations are in the host's memory");
  }
}

}  // namespace finetune
