// The measure that a result begins with, and that simpler answers are compared by.
#pragma once

#include <string>
#include <string_view>

#include "tasks/task.h"

namespace finetune {

// "eval_mse" of numbers, "eval_accuracy" of one label a row, "eval_f1_micro" of several, "eval_f1"
// of questions; empty if there is none of them.
inline std::string main_measure(const Metrics& metrics) {
  const std::string name = metrics.contains("eval_mse")        ? "eval_mse"
                           : metrics.contains("eval_mcc")      ? "eval_accuracy"
                           : metrics.contains("eval_f1_micro") ? "eval_f1_micro"
                                                               : "eval_f1";
  return metrics.contains(name) ? name : "";
}

// Micro F1 of one label a row is its accuracy.
inline bool is_repeated_measure(std::string_view name, const Metrics& metrics) {
  return name == "eval_f1_micro" && metrics.contains("eval_mcc");
}

}  // namespace finetune
