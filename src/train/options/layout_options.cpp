// Checks the options of a layout against each other.
#include "train/options/layout_options.h"

#include "core/error.h"
#include "distributed/layout/layout.h"

namespace finetune {
namespace {

struct RangeCheck {
  void operator()(const OptionInfo& info, const std::optional<int64_t>& value) const {
    if (value) require_inside(info, *value);
  }
  void operator()(const OptionInfo&, const std::string&) const {}
};

}  // namespace

void validate(const LayoutOptions& o, const TrainOptions& train) {
  for_each_layout_option(o, RangeCheck());
  parse_placement(o.placement);
  const PipelineKind kind = parse_pipeline_kind(o.pipeline_schedule);
  if (o.chunks && kind != PipelineKind::interleaved) {
    throw usage_error("--chunks ", *o.chunks, " needs --pipeline-schedule interleaved; it is ",
                      name_of(kind));
  }
  if (o.stages != "auto" && !o.pp) {
    throw usage_error("--stages ", in_quotes(o.stages), " needs --pp, the number of stages");
  }
  if (o.micro_batches && train.micro_batch_tokens) {
    throw usage_error("--micro-batches ", *o.micro_batches, " and --micro-batch-tokens ",
                      *train.micro_batch_tokens, " exclude each other");
  }
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
