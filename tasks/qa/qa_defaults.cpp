#include <nlohmann/json.hpp>

#include "tasks/qa/qa_task.h"

namespace finetune {

TaskOptions qa_defaults(const BertConfig& config) {
  TaskOptions options;
  nlohmann::json parsed = nlohmann::json::parse(config.source_json, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("finetune")) return options;
  const nlohmann::json& stored = parsed["finetune"];
  if (!stored.is_object()) return options;
  auto take = [&](const char* name, auto& value) {
    if (stored.contains(name) && stored[name].is_number()) stored[name].get_to(value);
  };
  take("max_length", options.max_length);
  take("doc_stride", options.doc_stride);
  take("n_best", options.n_best);
  take("max_answer_length", options.max_answer_length);
  take("null_threshold", options.null_threshold);
  take("squad_version", options.squad_version);
  return options;
}

}  // namespace finetune
