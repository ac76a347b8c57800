// Joins the parts of the table, and finds rows in it.
#include "train/options/table/option_table.h"

#include <bit>
#include <vector>

namespace finetune {
namespace {

struct Group {
  std::string_view title;
  std::span<const TrainOption> (*rows)();
};

constexpr Group kGroups[] = {
    {"Task", task_choice},
    {"Model", model_options},
    {"Data", data_options},
    {"Optimization", optimization_options},
    {"Evaluation and checkpoints", evaluation_options},
    {"Machine", machine_options},
    {kLayoutGroup, layout_options},
    {"Regression gates", gate_options},
    {"Output", output_options},
};

std::vector<TrainOption> all_rows() {
  std::vector<TrainOption> all;
  for (const Group& group : kGroups) {
    for (const TrainOption& row : group.rows()) {
      all.push_back(row);
      all.back().info.group = group.title;
    }
  }
  return all;
}

}  // namespace

std::span<const TrainOption> train_options() {
  static const std::vector<TrainOption> rows = all_rows();
  return rows;
}

const TrainOption* find_train_option(std::string_view name) {
  for (const TrainOption& row : train_options()) {
    if (row.info.name == name) return &row;
  }
  return nullptr;
}

bool is_foreign(const OptionInfo& option, TaskKind task) {
  return option.tasks != 0 && (option.tasks & only(task)) == 0;
}

std::optional<TaskKind> task_of(const OptionInfo& option) {
  if (option.tasks == 0) return std::nullopt;
  return TaskKind(std::countr_zero(option.tasks));
}

}  // namespace finetune
