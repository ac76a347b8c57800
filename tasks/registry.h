// The tasks there are: a new task is a new folder and a line in each function here, and in
// make_objective (objective.h).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "tasks/file_evaluation.h"
#include "tasks/task.h"

namespace finetune {

std::string_view name_of(TaskKind kind);
std::optional<TaskKind> task_named(std::string_view name);

// What the first data file is for: SQuAD's form is question answering. Error(data) if unreadable.
TaskKind task_of_data(const InputFile& file);

// Reads and tokenizes the data. `model_head`: the model has a trained head that may be kept.
// `tokenizer` must outlive the task.
std::unique_ptr<Task> make_task(TaskKind kind, const TaskOptions& options,
                                const Tokenizer& tokenizer, const BertConfig& config,
                                bool model_head);

// Evaluates options.eval_files with a model's own head, in memory that does not grow with them.
std::unique_ptr<FileEvaluation> make_file_evaluation(TaskKind kind, const TaskOptions& options,
                                                     const Tokenizer& tokenizer,
                                                     const BertConfig& config);

// The weight that only a model with this task's head has.
std::string_view head_weight(TaskKind kind);

// Options that the model was trained with, from the object `finetune` in its config.json; what is
// missing there has train's default. Files are not part of them.
TaskOptions stored_task_options(TaskKind kind, const BertConfig& config);

}  // namespace finetune
