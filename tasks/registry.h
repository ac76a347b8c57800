// The table of all tasks. A new task is a folder, a TaskKind and a row in registry.cpp.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task_traits.h"

namespace finetune {

std::span<const TaskTraits> all_tasks();
const TaskTraits& traits_of(TaskKind kind);
inline std::string_view name_of(TaskKind kind) {
  return traits_of(kind).name;
}
std::vector<std::string> task_names();
std::string_view task_words();  // the same: "classification|qa|mlm"
std::optional<TaskKind> task_named(std::string_view name);

// main() calls this first: a task may run a part of its work in a process of its own, which is this
// program again. Returns the exit status of such a process, and -1 in every other one.
int serve_task_process(int argc, char** argv);

// The task whose own form the file has, or null. Error(data) if the file cannot be read.
const TaskTraits* task_of_form(const InputFile& file);
// The task of the first data file: by its form, else classification.
TaskKind task_of_data(const InputFile& file);
// Error(data) if the file has the form of another task than the model's. `text_columns`: the
// model's, since rows may have columns with the names of a question's.
void require_form_of(TaskKind model, const InputFile& file,
                     const std::vector<std::string>& text_columns = {});

}  // namespace finetune
