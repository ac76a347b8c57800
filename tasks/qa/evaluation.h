// Evaluation of question answering: takes the logits of windows in any order, keeps of each only
// what its question's answer can need, and gives official scores and Hugging Face's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/squad.h"
#include "tasks/qa/features.h"
#include "tasks/qa/postprocess.h"
#include "tasks/task.h"

namespace finetune {

// Where answers are written; absent ones are left out.
struct AnswerWriters {
  JsonObjectWriter* predictions = nullptr;
  JsonObjectWriter* n_best = nullptr;
  JsonObjectWriter* null_odds = nullptr;  // version 2
};

class QaEvaluation : public Evaluation {
 public:
  // Both live longer than the evaluation. `with_references`: the data has answers to compare with.
  QaEvaluation(const SquadData& data, const QaWindows& windows, const AnswerOptions& options,
               bool with_references);

  // Error(diverged) for logits that are not finite.
  void add(const PackedBatch& batch, const float* logits) override;
  // Empty without references. eval_loss is the mean over the windows of their training loss.
  Metrics metrics() override;
  // predictions.json, nbest_predictions.json, and null_odds.json under version 2.
  void write_files(const std::filesystem::path& directory) override;

  // The answers of all questions, in their order. Requires that all windows are in.
  void write(const AnswerWriters& writers) const;

 private:
  QuestionAnswer answer(int64_t question) const;  // index into SquadData::questions
  void check_complete() const;

  const SquadData& data_;
  const QaWindows& windows_;
  AnswerOptions options_;
  bool with_references_;
  int64_t added_ = 0;
  std::vector<WindowAnswers> answers_;  // (windows)
  std::vector<double> losses_;          // (windows)
};

// What metrics() of version 1 or 2 can give.
std::vector<std::string> qa_metric_names(int squad_version);

}  // namespace finetune
