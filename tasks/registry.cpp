// The table of tasks, and look-ups in it.
#include "tasks/registry.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "tasks/classification/classification_traits.h"
#include "tasks/classification/ngrams/ngram_process.h"
#include "tasks/masked_language/masked_traits.h"
#include "tasks/qa/qa_traits.h"

namespace finetune {
namespace {

// In the order of TaskKind.
const std::array kTasks{classification_traits(), qa_traits(), masked_traits()};

}  // namespace

std::span<const TaskTraits> all_tasks() {
  return kTasks;
}

const TaskTraits& traits_of(TaskKind kind) {
  const TaskTraits& traits = kTasks.at(size_t(kind));
  FINETUNE_CHECK(traits.kind == kind);
  return traits;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskTraits& task : kTasks) names.emplace_back(task.name);
  return names;
}

std::string_view task_words() {
  static const std::string words = join(task_names(), "|");
  return words;
}

std::optional<TaskKind> task_named(std::string_view name) {
  for (const TaskTraits& task : kTasks) {
    if (task.name == name) return task.kind;
  }
  return std::nullopt;
}

const TaskTraits* task_of_form(const InputFile& file) {
  for (const TaskTraits& task : kTasks) {
    if (task.recognizes && task.recognizes(file)) return &task;
  }
  return nullptr;
}

TaskKind task_of_data(const InputFile& file) {
  const TaskTraits* task = task_of_form(file);
  return task ? task->kind : TaskKind::classification;
}

void require_form_of(TaskKind model, const InputFile& file,
                     const std::vector<std::string>& text_columns) {
  // Rows for a classification model may have these columns, too.
  const auto is_of_questions = [](const std::string& name) {
    return name == "question" || name == "context";
  };
  if (!text_columns.empty() &&
      std::all_of(text_columns.begin(), text_columns.end(), is_of_questions)) {
    return;
  }
  const TaskTraits* form = task_of_form(file);
  if (!form || form->kind == model) return;
  throw data_error(file.name.string(), ": holds ", form->data, ", but the model was trained for ",
                   name_of(model));
}

int serve_task_process(int argc, char** argv) {
  return serve_ngram_process(argc, argv);
}

std::unique_ptr<Objective> make_objective(const TrainingArrays& arrays) {
  return traits_of(arrays.kind).make_objective(arrays);
}

}  // namespace finetune
