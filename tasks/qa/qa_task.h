// Extractive question answering (SQuAD v1.1 and v2.0) as a task: samples are windows of a question
// and a part of its context, the model marks the answer's first and last token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/squad.h"
#include "tasks/qa/evaluation.h"
#include "tasks/qa/features.h"
#include "tasks/task.h"

namespace finetune {

// Reads train_files and eval_files (either may be empty) and makes their windows. With
// `eval_fraction` whole contexts are held out, so that no evaluated context has been trained on.
// `max_positions`: the model's. Error(usage) for options that the model or each other forbid,
// Error(data) for the files; the evaluation data must have answers (QaPredictor needs none).
std::unique_ptr<Task> make_qa_task(const TaskOptions& options, const Tokenizer& tokenizer,
                                   int64_t max_positions);

// The window and answer options of a task, checked and completed.
WindowOptions qa_window_options(const TaskOptions& options, const Tokenizer& tokenizer,
                                int64_t max_positions);
AnswerOptions qa_answer_options(const TaskOptions& options, bool has_unanswerable);

// Answers to the questions of files of any size: windows and answers exist for a few hundred
// questions at a time. The order is that of the files.
//
//   QaPredictor predictor(...);
//   while (predictor.next()) {
//     auto evaluation = predictor.start();   // for samples()
//     ... add() all of them ...
//     evaluation->write(writers);
//   }
class QaPredictor {
 public:
  QaPredictor(const TaskOptions& options, const Tokenizer& tokenizer, int64_t max_positions,
              int64_t questions_at_once = 512);

  bool next();
  const SampleSet& samples() const { return windows_.set; }
  std::unique_ptr<QaEvaluation> start() const;
  const AnswerOptions& answer_options() const { return answer_options_; }
  int64_t questions() const { return int64_t(data_.questions.size()); }

 private:
  const Tokenizer& tokenizer_;
  SquadData data_;
  WindowOptions window_options_;
  AnswerOptions answer_options_;
  int64_t questions_at_once_;
  QaWindows windows_;
};

}  // namespace finetune
