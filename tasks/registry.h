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
std::string_view task_words();  // joined: "classification|qa|mlm"
std::optional<TaskKind> task_named(std::string_view name);

// main() calls this first. A task may do a part of its work in its own process, which runs this
// program again. Returns the exit status in such a process, and -1 in any other.
int serve_task_process(int argc, char** argv);

// The task whose own file format this file has, or null. Error(data) if the file is unreadable.
const TaskTraits* task_of_form(const InputFile& file);
// The task of the first data file: the one whose format it has, else classification.
TaskKind task_of_data(const InputFile& file);
// Error(data) if the file has the format of another task than the model's. `text_columns`: the
// model's, because rows may have columns named like a question's.
void require_form_of(TaskKind model, const InputFile& file,
                     const std::vector<std::string>& text_columns = {});

}  // namespace finetune
