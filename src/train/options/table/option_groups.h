// The parts of the table of train's options, one function a heading of --help.
#pragma once

#include <span>

#include "tasks/task.h"
#include "train/options/option_row.h"
#include "train/options/train_options.h"

namespace finetune {

using TrainOption = OptionRow<TrainOptions>;

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
