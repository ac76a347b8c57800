// Writes JSON in the format of Python's json.dump(indent=4).
#include "tasks/qa/evaluation/answer_files.h"

#include "core/text/json_value.h"

namespace finetune {
namespace {

void append_string(std::string_view text, std::string& out) {
  append_json_string(text, out, true);
}

void append_float(float value, std::string& out) {
  out += JsonValue(value).text();
}

}  // namespace

JsonObjectWriter::JsonObjectWriter(std::function<void(std::string_view)> sink)
    : sink_(std::move(sink)) {}

void JsonObjectWriter::open(std::string_view key) {
  buffer_ = empty_ ? "{\n    " : ",\n    ";
  empty_ = false;
  append_string(key, buffer_);
  buffer_ += ": ";
}

void JsonObjectWriter::add(std::string_view key, std::string_view text) {
  open(key);
  append_string(text, buffer_);
  sink_(buffer_);
}

void JsonObjectWriter::add(std::string_view key, float number) {
  open(key);
  append_float(number, buffer_);
  sink_(buffer_);
}

void JsonObjectWriter::add(std::string_view key, const std::vector<RankedAnswer>& n_best) {
  open(key);
  buffer_ += "[";
  for (const RankedAnswer& answer : n_best) {
    buffer_ += &answer == n_best.data() ? "\n" : ",\n";
    buffer_ += "        {\n            \"start_logit\": ";
    append_float(answer.start_logit, buffer_);
    buffer_ += ",\n            \"end_logit\": ";
    append_float(answer.end_logit, buffer_);
    buffer_ += ",\n            \"text\": ";
    append_string(answer.text, buffer_);
    buffer_ += ",\n            \"probability\": ";
    append_float(answer.probability, buffer_);
    buffer_ += "\n        }";
  }
  buffer_ += "\n    ]";
  sink_(buffer_);
}

void JsonObjectWriter::finish() {
  sink_(empty_ ? "{}\n" : "\n}\n");
}

AnswerPaths answer_paths(int squad_version) {
  return {"predictions.json", "nbest_predictions.json", squad_version == 2 ? "null_odds.json" : ""};
}

AnswerFiles::AnswerFiles(const AnswerPaths& paths, const OpenOutput& open) {
  const auto opened = [&](const std::string& path) {
    return path.empty() ? nullptr : std::make_unique<File>(open(path));
  };
  predictions_ = opened(paths.predictions);
  n_best_ = opened(paths.n_best);
  null_odds_ = opened(paths.null_odds);
}

void AnswerFiles::add(const std::string& id, const QuestionAnswer& answer) {
  if (predictions_) predictions_->writer.add(id, answer.text);
  if (n_best_) n_best_->writer.add(id, answer.n_best);
  if (null_odds_) null_odds_->writer.add(id, answer.null_odds);
}

void AnswerFiles::commit() {
  File* const files[] = {null_odds_.get(), predictions_.get(), n_best_.get()};
  for (File* file : files) {
    if (!file) continue;
    file->writer.finish();
    file->output->complete();
  }
  for (File* file : files) {
    if (file) file->output->commit();
  }
}

}  // namespace finetune
