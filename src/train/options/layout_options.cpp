// Checks the options of a layout and of offload against each other.
#include "train/options/layout_options.h"

#include <string>

#include "core/error.h"
#include "distributed/layout/layout.h"
#include "distributed/pipeline/pipeline_schedule.h"

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

void validate_offload(const TrainOptions& o, bool may_be_gpu) {
  if (!o.offload_activations) return;
  const std::string name = concat("--offload-activations ", *o.offload_activations);
  if (!o.recompute) {
    throw usage_error(name, " needs --recompute: inputs of layers are what is moved");
  }
  if (o.device == "cpu" || (o.device == "auto" && !may_be_gpu)) {
    throw usage_error(name, " needs --device cuda: with --device ", o.device,
                      o.device == "auto" ? " the CPU may compute, whose" : "",
                      " activations are in the host's memory");
  }
}

}  // namespace finetune
