// Writes Hugging Face's files of answers, one answer at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/evaluator.h"
#include "tasks/qa/evaluation/postprocess.h"

namespace finetune {

// Writes a JSON object entry by entry, indented by 4 and in ASCII like Hugging Face's files. `sink`
// receives the text piece by piece.
class JsonObjectWriter {
 public:
  explicit JsonObjectWriter(std::function<void(std::string_view)> sink);
  void add(std::string_view key, std::string_view text);  // a string
  void add(std::string_view key, float number);
  void add(std::string_view key, const std::vector<RankedAnswer>& n_best);
  void finish();

 private:
  void open(std::string_view key);

  std::function<void(std::string_view)> sink_;
  std::string buffer_;
  bool empty_ = true;
};

// The paths of the files. A file with an empty path is not written.
struct AnswerPaths {
  std::string predictions, n_best, null_odds;
};
// predictions.json, nbest_predictions.json and, for version 2, null_odds.json.
AnswerPaths answer_paths(int squad_version);

class AnswerFiles {
 public:
  AnswerFiles(const AnswerPaths& paths, const OpenOutput& open);
  void add(const std::string& id, const QuestionAnswer& answer);
  void commit();  // writes all files or none; without it no file remains

 private:
  struct File {
    explicit File(std::unique_ptr<PredictionOutput> opened)
        : output(std::move(opened)),
          writer([this](std::string_view text) { output->write(text); }) {}
    std::unique_ptr<PredictionOutput> output;
    JsonObjectWriter writer;
  };
  std::unique_ptr<File> predictions_, n_best_, null_odds_;  // null: not written
};

}  // namespace finetune
