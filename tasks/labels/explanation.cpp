// Refuses --explain for models without one label a row.
#include "tasks/labels/explanation.h"

#include "core/error.h"

namespace finetune {

void check_explanation(ProblemType problem, size_t labels) {
  if (problem == ProblemType::single_label && labels >= 2) return;
  throw usage_error(
      "--explain needs a model that gives one label a row, of two or more; this model ",
      problem == ProblemType::regression    ? "gives numbers"
      : problem == ProblemType::multi_label ? "gives several labels a row"
                                            : "has one label");
}

}  // namespace finetune
