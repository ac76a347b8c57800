// The directory of an evaluation (evaluate --output): its files, and how it is told from others.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/files/directory_replacement.h"

namespace finetune {

// The evaluation's date, model and data; its values are strings.
inline constexpr std::string_view kEvaluationFacts = "evaluation.json";

// Names that an evaluation may give to a file, a run's too.
bool is_evaluation_file(std::string_view name);
// Its metrics.json holds metrics of an evaluation.
bool is_evaluation(const std::filesystem::path& directory);

inline constexpr DirectoryKind kEvaluation{"an evaluation that finetune wrote", is_evaluation_file,
                                           "metrics.json", is_evaluation};

}  // namespace finetune
