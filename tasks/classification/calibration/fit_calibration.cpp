// Fits temperature and thresholds, and judges them by cross-fitting.
#include "tasks/classification/calibration/fit_calibration.h"

#include <algorithm>

#include "core/text/text.h"
#include "tasks/classification/calibration/reliability.h"

namespace finetune {
namespace {

// Rows whose best label is another one, or decisions at one half that are wrong.
int64_t wrong_decisions(const HeldOutLogits& held) {
  int64_t wrong = 0;
  for (int64_t row = 0; row < held.rows(); ++row) {
    const std::span<const float> logits = held.row(row);
    if (!held.several_labels) {
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      wrong += best != held.labels[size_t(row)];
      continue;
    }
    const auto truth = held.sets[row];
    for (size_t c = 0; c < logits.size(); ++c) {
      wrong += (logits[c] > 0) != std::binary_search(truth.begin(), truth.end(), int32_t(c));
    }
  }
  return wrong;
}

// Probabilities of each half by the temperature of the other, or by one temperature.
struct Halves {
  double temperatures[2];

  double temperature_of(int64_t row) const { return temperatures[row % 2]; }
};

Reliability reliability_of(const HeldOutLogits& held, const Halves& halves) {
  Reliability out(held.outputs, held.several_labels);
  std::vector<double> probabilities;
  for (int64_t row = 0; row < held.rows(); ++row) {
    probabilities_at(held.row(row), held.several_labels, halves.temperature_of(row), probabilities);
    if (held.several_labels)
      out.add(probabilities, held.sets[row]);
    else
      out.add(probabilities, held.labels[size_t(row)]);
  }
  return out;
}

double likelihood_of(const HeldOutLogits& held, const Halves& halves) {
  double sum = 0;
  for (int64_t half = 0; half < 2; ++half) {
    const RowStride rows{half, 2};
    sum += double(rows.count(held.rows())) *
           negative_log_likelihood(held, rows, halves.temperatures[half]);
  }
  return sum / double(held.rows());
}

MultiLabelScores cross_fitted_scores(const HeldOutLogits& held, const Halves& halves) {
  std::vector<ClassScores> counts(static_cast<size_t>(held.outputs));
  int64_t whole = 0;
  std::vector<double> probabilities;
  for (int64_t half = 0; half < 2; ++half) {
    const double temperature = halves.temperatures[half];
    const std::vector<float> thresholds =
        best_thresholds(held, {1 - half, 2}, temperature, kLeastLabelRows);
    for (int64_t row = half; row < held.rows(); row += 2) {
      probabilities_at(held.row(row), true, temperature, probabilities);
      std::vector<int32_t> given;
      for (size_t c = 0; c < probabilities.size(); ++c) {
        if (float(probabilities[c]) >= thresholds[c]) given.push_back(int32_t(c));
      }
      whole += count_labels(counts, held.sets[row], given);
    }
  }
  return multi_label_scores(std::move(counts), whole, held.rows());
}

}  // namespace

CalibrationFit fit_calibration(const HeldOutLogits& held, bool tunes_thresholds) {
  CalibrationFit fit;
  const int64_t wrong = wrong_decisions(held);
  if (held.rows() < kLeastFittingRows || wrong < kLeastWrongRows) {
    fit.line = concat("not calibrated: ", held.rows(), " evaluation rows with ", wrong, " wrong ",
                      held.several_labels ? "decisions" : "ones", " (", kLeastFittingRows, " and ",
                      kLeastWrongRows, " are needed)");
    return fit;
  }
  const Halves raw{{1, 1}};
  Halves fitted{{best_temperature(held, {1, 2}), best_temperature(held, {0, 2})}};
  const bool better = likelihood_of(held, fitted) < likelihood_of(held, raw);
  if (better)
    fit.calibration.temperature = best_temperature(held, {});
  else
    fitted = raw;
  const Reliability before = reliability_of(held, raw), after = reliability_of(held, fitted);
  fit.metrics["eval_temperature"] = fit.calibration.temperature;
  fit.metrics["eval_ece_calibrated"] = after.calibration_error();
  fit.metrics["eval_brier_calibrated"] = after.brier_score();
  fit.line = concat("calibrated on ", held.rows(), " evaluation rows: temperature ",
                    format_fixed(fit.calibration.temperature, 3), ", expected calibration error ",
                    format_fixed(before.calibration_error(), 4), " -> ",
                    format_fixed(after.calibration_error(), 4), " on rows it was not fitted to");
  if (!tunes_thresholds) return fit;
  fit.calibration.thresholds =
      best_thresholds(held, {}, fit.calibration.temperature, kLeastLabelRows);
  const MultiLabelScores tuned = cross_fitted_scores(held, fitted);
  fit.metrics["eval_f1_macro_tuned"] = tuned.f1.macro;
  fit.metrics["eval_f1_micro_tuned"] = tuned.f1.micro;
  return fit;
}

std::vector<std::string> calibration_metric_names(bool tunes_thresholds) {
  std::vector<std::string> names = {"eval_temperature", "eval_ece_calibrated",
                                    "eval_brier_calibrated"};
  if (tunes_thresholds) {
    names.emplace_back("eval_f1_macro_tuned");
    names.emplace_back("eval_f1_micro_tuned");
  }
  return names;
}

}  // namespace finetune
