#include "tasks/registry.h"

#include "core/text.h"
#include "data/squad.h"
#include "tasks/classification/classification_task.h"
#include "tasks/classification/evaluation/file_evaluation.h"
#include "tasks/classification/objective.h"
#include "tasks/objective.h"
#include "tasks/pair_types.h"
#include "tasks/qa/evaluation/file_evaluation.h"
#include "tasks/qa/objective.h"
#include "tasks/qa/qa_task.h"

namespace finetune {

std::string_view name_of(TaskKind kind) {
  return kind == TaskKind::qa ? "qa" : "classification";
}

std::optional<TaskKind> task_named(std::string_view name) {
  for (TaskKind kind : {TaskKind::classification, TaskKind::qa}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

TaskKind task_of_data(const InputFile& file) {
  return looks_like_squad(file) ? TaskKind::qa : TaskKind::classification;
}

std::unique_ptr<Task> make_task(TaskKind kind, const TaskOptions& options,
                                const Tokenizer& tokenizer, const BertConfig& config,
                                bool model_head) {
  if (kind == TaskKind::qa) {
    require_pair_types(config, "question answering");
    return make_qa_task(options, tokenizer, config.max_position_embeddings);
  }
  return std::make_unique<ClassificationTask>(options, tokenizer, config, model_head);
}

std::unique_ptr<Objective> make_objective(const TrainingArrays& arrays) {
  return arrays.kind == TaskKind::qa ? make_qa_objective(arrays)
                                     : make_classification_objective(arrays);
}

std::unique_ptr<FileEvaluation> make_file_evaluation(TaskKind kind, const TaskOptions& options,
                                                     const Tokenizer& tokenizer,
                                                     const BertConfig& config) {
  if (kind == TaskKind::qa) {
    require_pair_types(config, "question answering");
    return std::make_unique<QaFileEvaluation>(options, tokenizer, config.max_position_embeddings,
                                              true);
  }
  return std::make_unique<ClassificationFileEvaluation>(options, tokenizer, config);
}

std::string_view head_weight(TaskKind kind) {
  return kind == TaskKind::qa ? "qa_outputs.weight" : "classifier.weight";
}

TaskOptions stored_task_options(TaskKind kind, const BertConfig& config) {
  return kind == TaskKind::qa ? qa_defaults(config) : classification_defaults(config);
}

}  // namespace finetune
