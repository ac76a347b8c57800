// Refuses outputs that are NaN or infinite.
#include "tasks/finite_outputs.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace finetune {
namespace {

bool all_finite(std::span<const float> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace

void require_finite(std::span<const float> outputs, std::string_view of) {
  if (all_finite(outputs)) return;
  throw Error(ExitCode::diverged, concat("the model's outputs are not finite, first those for ", of,
                                         ": its weights have diverged or are damaged"));
}

void require_finite_row(std::span<const float> outputs, int64_t row) {
  if (!all_finite(outputs)) require_finite(outputs, concat("row ", row + 1));
}

}  // namespace finetune
