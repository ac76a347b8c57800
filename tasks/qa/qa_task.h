// Extractive question answering (SQuAD v1.1 and v2.0) as a Task.
// A sample is a window: a question and a part of its context. The model marks the answer's first
// and last token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/squad.h"
#include "data/text_sum.h"
#include "tasks/qa/evaluation/postprocess.h"
#include "tasks/qa/features.h"
#include "tasks/task.h"

namespace finetune {

// Reads train_files and eval_files (either may be empty) and makes their windows. With
// `eval_fraction` whole contexts are held out, so that no evaluated context was trained on.
// `max_positions`: the model's. Error(usage) for options that contradict the model or each other,
// Error(data) for the files. Evaluation data must have answers (not needed by QaEvaluator).
std::unique_ptr<Task> make_qa_task(const TaskOptions& options, const Tokenizer& tokenizer,
                                   int64_t max_positions);

// The questions that a run with these options trains on. Errors as in make_qa_task.
TrainedTexts trained_questions(const TaskOptions& options);

// The options of the training run of a question-answering model, from the object `finetune` in its
// config.json. Missing options get train's defaults.
TaskOptions qa_defaults(const EncoderConfig& config);

// The window and answer options of a task, checked and completed.
WindowOptions qa_window_options(const TaskOptions& options, const Tokenizer& tokenizer,
                                int64_t max_positions);
AnswerOptions qa_answer_options(const QaOptions& options, bool has_unanswerable);

}  // namespace finetune
