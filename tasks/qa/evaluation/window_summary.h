// Lines for the log about questions and their windows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/squad.h"
#include "tasks/qa/features.h"

namespace finetune {

// Totals over all windows, made at once or piece by piece.
struct WindowTotals {
  int64_t windows = 0, tokens = 0;
  int64_t split_questions = 0, cut_questions = 0, reduced_strides = 0;

  void add(const QaWindows& piece);
};

// `name`: train or eval.
std::vector<std::string> describe_questions(std::string_view name, const SquadData& data,
                                            int squad_version);
std::vector<std::string> describe_windows(std::string_view name, const WindowTotals& totals,
                                          const WindowOptions& options);

}  // namespace finetune
