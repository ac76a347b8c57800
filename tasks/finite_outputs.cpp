// Tells outputs that are NaN or infinite.
#include "tasks/finite_outputs.h"

#include <algorithm>
#include <cmath>

namespace finetune {

bool all_finite(std::span<const float> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](float x) { return std::isfinite(x); });
}

Error not_finite(const std::string& of) {
  return Error(ExitCode::diverged, concat("the model's outputs are not finite, first those for ",
                                          of, ": its weights have diverged or are damaged"));
}

}  // namespace finetune
