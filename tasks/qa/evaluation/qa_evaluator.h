// The evaluator of question answering: answers questions, and scores them against references.
// Windows, logits and candidates are in memory for a few hundred questions at a time; the questions
// themselves and the scores of answered questions stay in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/squad.h"
#include "tasks/evaluator.h"
#include "tasks/prediction_request.h"
#include "tasks/qa/evaluation/answer_files.h"
#include "tasks/qa/evaluation/question_scores.h"
#include "tasks/qa/evaluation/window_summary.h"
#include "tasks/qa/features.h"
#include "tasks/task_traits.h"

namespace finetune {

class QaEvaluator final : public Evaluator {
 public:
  static constexpr int64_t kQuestionsAtOnce = 512;

  // The evaluation questions of a training run and their windows; both must outlive this.
  QaEvaluator(const SquadData& data, const QaWindows& windows, const AnswerOptions& options,
              RepeatedQuestions repeated = {});
  // Reads options.eval_files. `has_references`: the questions have answers to compare with; else
  // metrics() is empty. The tokenizer must outlive the evaluator. Errors as in make_qa_task.
  QaEvaluator(const TaskOptions& options, const Tokenizer& tokenizer, int64_t max_positions,
              bool has_references, int64_t questions_at_once = kQuestionsAtOnce);
  // Questions without references, for `predict`. Error(usage) if the request is for another task.
  static std::unique_ptr<QaEvaluator> of_input(const PredictionRequest& request,
                                               const TaskOptions& options, const TaskModel& model);

  Head head() const override { return {HeadKind::token, 2}; }
  int64_t max_length() const override { return window_options_.max_length; }
  std::vector<std::string> metric_names() const override;
  std::vector<std::string> describe() const override;
  std::vector<std::string> describe_samples() const override;

  std::optional<SampleChunk> next() override;
  double share() const override;
  int64_t rows() const override { return answered_; }
  EvaluatedUnit unit() const override { return {"answered", "questions"}; }
  void add(const PackedBatch& batch, const float* logits) override;

  void open_outputs(const OpenOutput& open) override;
  void commit_outputs() override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;
  void take_training_rows(const TaskOptions& training) override;

 private:
  int64_t questions() const { return int64_t(data_->questions.size()); }
  QuestionAnswer answer_of(int64_t question, const WindowAnswers* windows, int64_t count) const;
  void finish_question(int64_t question);  // open_ must have all of its windows
  void require_all_answered() const;

  SquadData read_;
  const SquadData* data_;
  const Tokenizer* tokenizer_ = nullptr;  // null: the windows are in memory
  WindowOptions window_options_;
  AnswerOptions answer_options_;
  bool has_references_ = true;
  int64_t questions_at_once_ = 0;
  std::optional<SampleSetChunks> chunks_;  // windows in memory

  int64_t given_ = 0;  // questions whose windows next() has returned
  WindowTotals totals_;
  std::deque<std::shared_ptr<const QaWindows>> pieces_;  // with windows that wait for logits
  int64_t window_ = 0;                                   // the next window of pieces_.front()
  int64_t windows_added_ = 0;                            // in all pieces
  int64_t answered_ = 0;
  std::vector<WindowAnswers> open_;  // the current question's
  std::vector<WindowAnswers> kept_;  // all windows in memory, for write_files()
  MeanLoss loss_;
  QuestionScores scores_;
  RepeatedQuestions repeated_;  // empty: trained questions are unknown
  AnswerPaths paths_;
  std::optional<AnswerFiles> files_;
};

}  // namespace finetune
