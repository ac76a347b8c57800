// Extractive question answering (SQuAD v1.1 and v2.0) as a Task.
// Samples are windows of a question and a part of its context, the model marks the answer's first
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
// `eval_fraction` whole contexts are held out, so that no evaluated context has been trained on.
// `max_positions`: the model's. Error(usage) for options that the model or each other forbid,
// Error(data) for the files; the evaluation data must have answers (QaEvaluator can do without).
std::unique_ptr<Task> make_qa_task(const TaskOptions& options, const Tokenizer& tokenizer,
                                   int64_t max_positions);

// The questions that a run with these options trains on. Errors as of make_qa_task.
TrainedTexts trained_questions(const TaskOptions& options);

// The options of a question-answering model's training run, from the object `finetune` in its
// config.json. Missing options have train's defaults.
TaskOptions qa_defaults(const EncoderConfig& config);

// The window and answer options of a task, checked and completed.
WindowOptions qa_window_options(const TaskOptions& options, const Tokenizer& tokenizer,
                                int64_t max_positions);
AnswerOptions qa_answer_options(const QaOptions& options, bool has_unanswerable);

}  // namespace finetune
