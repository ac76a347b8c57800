// Describes a task without making one: a row for each task in registry.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/head.h"
#include "tasks/evaluator.h"
#include "tasks/objective.h"
#include "tasks/prediction_request.h"
#include "tasks/task.h"

namespace finetune {

// A model without its weights. It must outlive all objects made with it.
struct TaskModel {
  const Tokenizer& tokenizer;
  const EncoderConfig& config;
  bool trained_head = false;  // the model has a head that may be kept
};

struct TaskTraits {
  TaskKind kind;
  std::string_view name;   // --task, and "task" in the object `finetune` of config.json
  std::string_view title;  // in sentences
  // What the task's own file format holds: "questions". Empty: the task reads rows.
  std::string_view data = "";
  std::string_view example = "row";   // the unit that is counted
  std::string_view hub_task;          // "pipeline_tag" of a model card
  std::string_view hub_data = "csv";  // the data set's type in a model card
  HeadKind head;
  // Whether evaluate and predict can use a model of this task.
  bool answers = true;

  // Whether the file has this task's own format; null if the task reads rows.
  bool (*recognizes)(const InputFile& file) = nullptr;
  // Reads and tokenizes the data.
  std::unique_ptr<Task> (*make)(const TaskOptions& options, const TaskModel& model);
  // The memory that `arrays` views must outlive the objective.
  std::unique_ptr<Objective> (*make_objective)(const TrainingArrays& arrays);
  // An evaluator for options.eval_files, which have labels or answers, with the model's own head.
  std::unique_ptr<Evaluator> (*make_evaluator)(const TaskOptions& options, const TaskModel& model);
  // An evaluator for an input without labels, for `predict`. It is made before the weights are
  // loaded, so that faults are reported early.
  std::unique_ptr<Evaluator> (*make_predictor)(const PredictionRequest& request,
                                               const TaskOptions& options, const TaskModel& model);
  // An evaluator that chooses the rows without labels that are worth labelling next. Null if the
  // task has no such rows.
  std::unique_ptr<Evaluator> (*make_chooser)(const PredictionRequest& request,
                                             const TaskOptions& options,
                                             const TaskModel& model) = nullptr;
  // Reads the beginnings of options.train_files. Error(data) if one cannot be read, or lacks a
  // column that the options name. Null if the task has no baselines to train on these files.
  void (*require_columns)(const TaskOptions& options) = nullptr;
  // The options that the model was trained with, from the object `finetune` in its config.json.
  // Missing options get train's defaults. Files are not among them.
  TaskOptions (*stored_options)(const EncoderConfig& config);

  // The name of a weight that only a model with this task's head has.
  std::string head_weight(const Architecture& architecture) const {
    return architecture.module_of(traits_of(head).role) + ".weight";
  }
};

}  // namespace finetune
