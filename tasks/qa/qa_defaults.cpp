// Reads a trained model's question-answering options from its config.json.
#include <cmath>

#include "core/error.h"
#include "core/text/json_value.h"
#include "tasks/qa/qa_task.h"

namespace finetune {

TaskOptions qa_defaults(const EncoderConfig& config) {
  TaskOptions options;
  const JsonValue parsed = JsonValue::parse(config.source_json);
  // What a file says is not what a user has asked for: values that no option could have are faults
  // of the model.
  auto take = [&](const char* name, auto& value, double least, double most) {
    const auto number = parsed["finetune"][name].as<double>();
    if (!number) return;
    if (!(*number >= least && *number <= most)) {
      throw model_error("config.json: finetune.", name, " is ", *number, ", not from ", least,
                        " to ", most);
    }
    value = std::remove_reference_t<decltype(value)>(*number);
  };
  constexpr double kMost = 0x1p62;
  take("max_length", options.max_length, 0, double(config.max_length()));
  take("doc_stride", options.doc_stride, 0, kMost);
  take("n_best", options.n_best, 1, kMost);
  take("max_answer_length", options.max_answer_length, 1, kMost);
  take("null_threshold", options.null_threshold, -HUGE_VAL, HUGE_VAL);
  take("squad_version", options.squad_version, 0, 2);
  return options;
}

}  // namespace finetune
