// Fits temperature and thresholds, and judges them by cross-fitting.
#include "tasks/classification/calibration/fit_calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/text/text.h"
#include "tasks/classification/calibration/reliability.h"
#include "tasks/classification/calibration/thresholds.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"

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

// Probabilities of each half with the fit of the other half, or of all rows with one temperature.
struct Halves {
  double temperatures[2];
  std::optional<std::array<MixWeights, 2>> mixes{};  // instead of temperatures

  void probabilities(const HeldOutLogits& held, int64_t row, std::vector<double>& out) const {
    const auto half = size_t(row % 2);
    if (!mixes) {
      probabilities_at(held.row(row), held.several_labels, temperatures[half], out);
      return;
    }
    const auto logits = held.row(row), margins = held.margins_of(row);
    std::vector<float> mixed(logits.begin(), logits.end());
    mix_logits((*mixes)[half], margins, mixed);
    probabilities_at(mixed, false, 1, out);
  }
  double likelihood(const HeldOutLogits& held, RowStride rows) const {
    const auto half = size_t(rows.first);
    return mixes ? negative_log_likelihood(held, rows, (*mixes)[half])
                 : negative_log_likelihood(held, rows, temperatures[half]);
  }
};

Reliability reliability_of(const HeldOutLogits& held, const HeldOutLogits& unknown,
                           const Halves& halves) {
  Reliability out(held.outputs, held.several_labels);
  std::vector<double> probabilities;
  for (const HeldOutLogits* rows : {&held, &unknown}) {
    for (int64_t row = 0; row < rows->rows(); ++row) {
      halves.probabilities(*rows, row, probabilities);
      if (rows->several_labels)
        out.add(probabilities, rows->sets[row]);
      else
        out.add(probabilities, rows->labels[size_t(row)]);
    }
  }
  return out;
}

double likelihood_of(const HeldOutLogits& held, const Halves& halves) {
  double sum = 0;
  for (int64_t half = 0; half < 2; ++half) {
    const RowStride rows{half, 2};
    sum += double(rows.count(held.rows())) * halves.likelihood(held, rows);
  }
  return sum / double(held.rows());
}

// Takes what thresholds are worth on rows they were not fitted to.
void fit_thresholds(const HeldOutLogits& held, const Halves& fitted, CalibrationFit& fit) {
  TunedThresholds tuned = tuned_thresholds(held, {fitted.temperatures[0], fitted.temperatures[1]},
                                           fit.calibration.temperature, kLeastLabelRows);
  const F1Scores &before = tuned.before.f1, &after = tuned.after.f1;
  fit.calibration.thresholds = std::move(tuned.thresholds);
  fit.metrics["eval_f1_macro_tuned"] = after.macro;
  fit.metrics["eval_f1_micro_tuned"] = after.micro;
  fit.report.facts.emplace_back("thresholds",
                                concat("of ", tuned.tuned, " of ", held.outputs, " labels"));
  fit.report.line +=
      concat("; thresholds of ", tuned.tuned, " of ", held.outputs, " labels, macro F1 ",
             format_fixed(before.macro, 4), " -> ", format_fixed(after.macro, 4), ", micro F1 ",
             format_fixed(before.micro, 4), " -> ", format_fixed(after.micro, 4), " likewise");
}

// The one-standard-error rule: whether the mean over rows of what `other` adds to the logarithm of
// the label's probability is beyond its standard error, so that it pays for being less simple.
bool is_surely_better(const HeldOutLogits& held, const Halves& own, const Halves& other) {
  constexpr double kLeast = 1e-300;
  const auto rows = double(held.rows());
  std::vector<double> gains, probabilities;
  for (int64_t row = 0; row < held.rows(); ++row) {
    const auto truth = size_t(held.labels[size_t(row)]);
    own.probabilities(held, row, probabilities);
    const double before = probabilities[truth];
    other.probabilities(held, row, probabilities);
    gains.push_back(std::log(std::max(probabilities[truth], kLeast) / std::max(before, kLeast)));
  }
  const double mean = std::accumulate(gains.begin(), gains.end(), 0.0) / rows;
  double squares = 0;
  for (double gain : gains) squares += (gain - mean) * (gain - mean);
  return mean > std::sqrt(squares / rows / std::max(1.0, rows - 1));
}

// Takes the mix instead of the temperature if it is better on rows that it was not fitted to.
void fit_mix(const HeldOutLogits& held, Halves& fitted, CalibrationFit& fit) {
  Halves mixed = fitted;
  mixed.mixes = {best_mix(held, {1, 2}), best_mix(held, {0, 2})};
  const MixWeights best = best_mix(held, {});
  const double alone = likelihood_of(held, fitted), together = likelihood_of(held, mixed);
  const std::string likelihoods =
      concat("negative log likelihood ", format_fixed(alone, 4), " -> ", format_fixed(together, 4));
  if (!(together < alone) || best.ngrams == 0 || !is_surely_better(held, fitted, mixed)) {
    fit.report.facts.emplace_back("ngram_mix", concat("none: not surely better, ", likelihoods));
    fit.report.line = concat("no mix with n-grams, which is not surely better: ", likelihoods,
                             " on rows it was not fitted to; ");
    return;
  }
  fitted = mixed;
  fit.mix = best;
  fit.metrics["eval_mix_model"] = fit.mix->model;
  fit.metrics["eval_mix_ngrams"] = fit.mix->ngrams;
  const std::string weights = concat(format_fixed(fit.mix->model, 3), " of the model's logits and ",
                                     format_fixed(fit.mix->ngrams, 3), " of theirs");
  fit.report.facts.emplace_back("ngram_mix", weights);
  fit.report.line = concat("mixed with n-grams: ", weights, ", ", likelihoods, "; ");
}

// Compares the likelihoods of the raw logits and of the fitted temperature.
std::string temperature_words(double temperature, double raw, double fitted) {
  const std::string likelihoods =
      concat("negative log likelihood ", format_fixed(raw, 4), " -> ", format_fixed(fitted, 4));
  return concat(
      "temperature ", format_fixed(temperature, 3),
      fitted < raw ? concat(", ", likelihoods) : concat(" (no other is better: ", likelihoods, ")"),
      ", ");
}

}  // namespace

CalibrationFit fit_calibration(const HeldOutLogits& held, const HeldOutLogits& unknown,
                               bool tunes_thresholds) {
  CalibrationFit fit;
  const int64_t wrong = wrong_decisions(held);
  if (held.rows() < kLeastFittingRows || wrong < kLeastWrongRows) {
    const std::string why = concat(held.rows(), " evaluation rows with ", wrong, " wrong ",
                                   held.several_labels ? "decisions" : "ones", " (",
                                   kLeastFittingRows, " and ", kLeastWrongRows, " are needed)");
    CalibrationReport& report = fit.report;
    report.line =
        concat(tunes_thresholds ? "warning: no thresholds, " : "",
               held.margins.empty() ? "" : "no mix with n-grams, ", "not calibrated: ", why);
    report.facts.emplace_back("calibration", concat("none: ", why));
    if (tunes_thresholds) report.facts.emplace_back("thresholds", concat("none: ", why));
    if (!held.margins.empty()) {
      report.facts.emplace_back("ngram_mix", concat("none: ", why));
      report.why_no_mix = why;
    }
    return fit;
  }
  const Halves raw{{1, 1}};
  Halves fitted{{best_temperature(held, {1, 2}), best_temperature(held, {0, 2})}};
  const double as_it_is = likelihood_of(held, raw), with_it = likelihood_of(held, fitted);
  const bool better = with_it < as_it_is;
  if (better)
    fit.calibration.temperature = best_temperature(held, {});
  else
    fitted = raw;
  fit.metrics["eval_temperature"] = fit.calibration.temperature;
  if (!held.margins.empty()) fit_mix(held, fitted, fit);
  const Reliability before = reliability_of(held, unknown, raw),
                    after = reliability_of(held, unknown, fitted);
  fit.metrics["eval_ece_calibrated"] = after.calibration_error();
  fit.metrics["eval_brier_calibrated"] = after.brier_score();
  fit.report.facts.emplace_back(
      "calibration", fit.mix
                         ? "by the mix with n-grams"
                         : concat("temperature ", format_fixed(fit.calibration.temperature, 3)));
  fit.report.line +=
      concat("calibrated on ", held.rows(), " evaluation rows: ",
             fit.mix ? "" : temperature_words(fit.calibration.temperature, as_it_is, with_it),
             "expected calibration error ", format_fixed(before.calibration_error(), 4), " -> ",
             format_fixed(after.calibration_error(), 4), " on rows it was not fitted to");
  if (tunes_thresholds) fit_thresholds(held, fitted, fit);
  return fit;
}

std::vector<std::string> calibration_metric_names(bool tunes_thresholds, bool mixes) {
  std::vector<std::string> names = {"eval_temperature", "eval_ece_calibrated",
                                    "eval_brier_calibrated"};
  if (tunes_thresholds) {
    names.emplace_back("eval_f1_macro_tuned");
    names.emplace_back("eval_f1_micro_tuned");
  }
  if (mixes) {
    names.emplace_back("eval_mix_model");
    for (const char* name : {"eval_mix_ngrams", "baseline_unmixed_ece", "baseline_unmixed_brier"}) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace finetune
