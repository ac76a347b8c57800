// The table of train's options. adapt, plan and check have the same options; evaluate, predict and
// others have the options whose rows name these commands.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tasks/task.h"
#include "train/options/option_row.h"
#include "train/options/train_options.h"

namespace finetune {

using TrainOption = OptionRow<TrainOptions>;

// In the order of --help.
std::span<const TrainOption> train_options();
// Null if train has no option of this name.
const TrainOption* find_train_option(std::string_view name);

// Whether an option is only for tasks other than this one.
bool is_foreign(const OptionInfo& option, TaskKind task);
// The first task that an option is for; nothing if the option is for every task.
std::optional<TaskKind> task_of(const OptionInfo& option);

// The parts of the table: one function for each heading of --help.

inline constexpr Tasks kLabels = only(TaskKind::classification), kQuestions = only(TaskKind::qa),
                       kTexts = only(TaskKind::mlm), kRows = kLabels | kTexts;

std::span<const TrainOption> task_choice();
std::span<const TrainOption> model_options();
std::span<const TrainOption> data_options();
std::span<const TrainOption> optimization_options();
std::span<const TrainOption> evaluation_options();
std::span<const TrainOption> machine_options();
std::span<const TrainOption> layout_options();
std::span<const TrainOption> gate_options();
std::span<const TrainOption> output_options();

}  // namespace finetune
