// The main measure of a result, by which simpler answers are compared.
#pragma once

#include <string>
#include <string_view>

#include "tasks/task.h"

namespace finetune {

// "eval_mse" for numbers, "eval_accuracy" for one label per row, "eval_f1_micro" for several,
// "eval_f1" for questions; empty if there is none of them.
inline std::string main_measure(const Metrics& metrics) {
  const std::string name = metrics.contains("eval_mse")        ? "eval_mse"
                           : metrics.contains("eval_mcc")      ? "eval_accuracy"
                           : metrics.contains("eval_f1_micro") ? "eval_f1_micro"
                                                               : "eval_f1";
  return metrics.contains(name) ? name : "";
}

// With one label per row, micro F1 equals accuracy.
inline bool is_repeated_measure(std::string_view name, const Metrics& metrics) {
  return name == "eval_f1_micro" && metrics.contains("eval_mcc");
}

}  // namespace finetune
