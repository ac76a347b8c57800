// Finds the two likeliest labels, or the decision nearest to its threshold.
#include "tasks/classification/next_rows/doubt.h"

#include <cmath>

#include "core/text/text.h"
#include "tasks/classification/predictions/prediction_format.h"

namespace finetune {
namespace {

Doubt of_one_label(std::span<const float> logits, const LogitCalibration& calibration) {
  const auto best = top_labels(logits.data(), int64_t(logits.size()), 2, calibration.temperature);
  Doubt out;
  out.likely = {best[0].id};
  out.other = best[1].id;
  out.confidence = best[0].probability;
  out.of_other = best[1].probability;
  out.doubt = 1 - (double(out.confidence) - double(out.of_other));
  return out;
}

Doubt of_several_labels(std::span<const float> logits, const LogitCalibration& calibration) {
  Doubt out;
  out.likely = ids_of(positive_labels(logits.data(), int64_t(logits.size()), calibration));
  out.doubt = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double probability = 1 / (1 + std::exp(-double(logits[i]) / calibration.temperature));
    const double threshold =
        calibration.thresholds.empty() ? 0.5 : double(calibration.thresholds[i]);
    const bool is_given = probability >= threshold;
    const double room = is_given ? 1 - threshold : threshold;  // distance to certainty
    const double doubt = room > 0 ? 1 - std::abs(probability - threshold) / room : 0;
    if (doubt <= out.doubt) continue;
    out.doubt = doubt;
    out.other = int32_t(i);
    out.of_other = float(probability);
    out.confidence = float(is_given ? probability : 1 - probability);
  }
  return out;
}

}  // namespace

Doubt doubt_of(std::span<const float> logits, ProblemType problem,
               const LogitCalibration& calibration) {
  return problem == ProblemType::multi_label ? of_several_labels(logits, calibration)
                                             : of_one_label(logits, calibration);
}

std::string describe_doubt(const Doubt& doubt, ProblemType problem,
                           const std::vector<std::string>& labels) {
  const auto percent = [](float probability) {
    return concat(format_fixed(100 * double(probability), 0), " %");
  };
  const auto name = [&](int32_t id) { return concat("'", labels[size_t(id)], "'"); };
  if (problem == ProblemType::multi_label) {
    return concat("has ", name(doubt.other), " with ", percent(doubt.of_other));
  }
  constexpr double kUnsureBelow = 0.5;  // difference of the two highest probabilities
  const std::string first = name(doubt.likely[0]);
  if (1 - doubt.doubt >= kUnsureBelow) {
    return concat("probably ", first, " (", percent(doubt.confidence), ")");
  }
  return concat(first, " ", percent(doubt.confidence), " or ", name(doubt.other), " ",
                percent(doubt.of_other));
}

}  // namespace finetune
