#include "train/inference.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tasks/registry.h"
#include "train/pretrained.h"
#include "weights/weights.h"

namespace finetune {
namespace {

TaskKind stored_task(const BertConfig& config, const WeightSource& source) {
  auto parsed = nlohmann::json::parse(config.source_json, nullptr, false);
  if (parsed.is_object() && parsed.contains("finetune") && parsed["finetune"].is_object()) {
    const auto& stored = parsed["finetune"];
    if (stored.contains("task") && stored["task"].is_string()) {
      if (auto kind = task_named(stored["task"].get<std::string>())) return *kind;
    }
  }
  for (TaskKind kind : {TaskKind::classification, TaskKind::qa}) {
    if (source.find(head_weight(kind))) return kind;
  }
  throw model_error(source.path().string(), ": the model has no trained head (neither ",
                    head_weight(TaskKind::classification), " nor ", head_weight(TaskKind::qa),
                    "); fine-tune it first with finetune train");
}

}  // namespace

FineTuned open_fine_tuned(const InferenceOptions& options) {
  FineTuned out;
  out.model = open_model(options.model, true);
  out.kind = stored_task(out.model.config, *open_weights(out.model.directory.weights));
  out.options = stored_task_options(out.kind, out.model.config);
  if (options.text_columns) out.options.text_columns = *options.text_columns;
  if (options.text_pair_column) out.options.text_pair_column = *options.text_pair_column;
  if (options.label_column) out.options.label_column = *options.label_column;
  if (options.max_length) out.options.max_length = *options.max_length;
  if (options.doc_stride) out.options.doc_stride = *options.doc_stride;
  if (options.squad_version) {
    out.options.squad_version = int(parse_int(*options.squad_version).value_or(0));  // auto: 0
  }
  out.batch_size = options.batch_size;
  return out;
}

void load_fine_tuned(FineTuned& model, const InferenceOptions& options, Head head) {
  model.engine = std::make_unique<Engine>(make_backend(options.device, options.threads, options.precision),
                                          model.model.config, head);
  auto source = open_weights(model.model.directory.weights);
  load_pretrained(model.engine->table(), *source, model.model.config.initializer_range, 0,
                  HeadPolicy::require, model.engine->weights());
}

void FineTuned::reserve(int64_t max_length) {
  micro_batch_tokens = auto_micro_batch_tokens(model.config, max_length);
  engine->set_evaluation_sequences(batch_size);
  engine->reserve(micro_batch_tokens, engine->evaluation_sequences(), false);
}

}  // namespace finetune
