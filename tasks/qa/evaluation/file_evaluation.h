// Answers to the questions of files of any size, with or without reference answers.
// Windows, logits and candidates exist for a few hundred questions at a time. The questions
// themselves are in memory, and of each answered one its score.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/squad.h"
#include "tasks/file_evaluation.h"
#include "tasks/qa/evaluation/evaluation.h"
#include "tasks/qa/evaluation/summary.h"
#include "tasks/qa/features.h"

namespace finetune {

class QaFileEvaluation final : public FileEvaluation {
 public:
  // Reads options.eval_files. `with_references`: the questions have answers to compare with, else
  // metrics() is empty. The tokenizer must outlive the evaluation. Errors as of make_qa_task.
  QaFileEvaluation(const TaskOptions& options, const Tokenizer& tokenizer, int64_t max_positions,
                   bool with_references, int64_t questions_at_once = 512);

  Head head() const override { return {HeadKind::token, 2}; }
  int64_t max_length() const override { return window_options_.max_length; }
  std::vector<std::string> metric_names() const override {
    return qa_metric_names(answer_options_.squad_version, has_known_places(data_),
                           !repeated_.empty());
  }
  void take_training_rows(const TaskOptions& training) override;
  std::vector<std::string> describe() const override;
  std::vector<std::string> describe_samples() const override;
  int64_t questions() const { return int64_t(data_.questions.size()); }

  void open_files(const std::filesystem::path& directory) override;
  void write_to(const AnswerWriters& writers) { writers_ = writers; }  // in place of files
  int64_t rows() const override { return questions(); }
  const SampleSet* next() override;
  double share() const override { return double(read_) / double(questions()); }
  void add(const PackedBatch& batch, const float* logits) override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;

 private:
  void answer(int64_t question);  // all of its windows are in open_

  const Tokenizer& tokenizer_;
  WindowOptions window_options_;
  SquadData data_;
  AnswerOptions answer_options_;
  bool with_references_;
  int64_t questions_at_once_;

  int64_t read_ = 0;  // questions whose windows have been made
  WindowTotals totals_;
  std::deque<QaWindows> pieces_;     // with windows that wait for their logits
  int64_t window_ = 0;               // the first such of pieces_.front()
  int64_t added_ = 0;                // windows of all pieces
  std::vector<WindowAnswers> open_;  // of the question under way
  MeanLoss loss_;
  QuestionScores scores_;
  RepeatedQuestions repeated_;  // once training rows are taken
  AnswerWriters writers_;
  std::optional<AnswerFiles> files_;
};

}  // namespace finetune
