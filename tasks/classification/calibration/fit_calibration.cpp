// Fits temperature and thresholds, and measures them by cross-fitting.
#include "tasks/classification/calibration/fit_calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/classification/calibration/reliability.h"
#include "tasks/classification/calibration/thresholds.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"

namespace finetune {
namespace {

// Counts rows whose best label is wrong or, with several labels, wrong decisions at one half.
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

// For each part of the rows, the values that were fitted to the other parts.
struct PartFits {
  std::array<double, kFitParts> temperatures;
  std::optional<std::array<MixWeights, kFitParts>> mixes{};  // instead of temperatures

  void probabilities(const HeldOutLogits& held, int64_t row, std::vector<double>& out) const {
    const size_t part = held.parts[size_t(row)];
    if (!mixes) {
      probabilities_at(held.row(row), held.several_labels, temperatures[part], out);
      return;
    }
    const auto logits = held.row(row), margins = held.margins_of(row);
    std::vector<float> mixed(logits.begin(), logits.end());
    mix_logits((*mixes)[part], margins, mixed);
    probabilities_at(mixed, false, 1, out);
  }
  double likelihood(const HeldOutLogits& held, int part) const {
    const RowChoice rows{RowChoice::Of::part, part};
    const auto own = size_t(part);
    return mixes ? negative_log_likelihood(held, rows, (*mixes)[own])
                 : negative_log_likelihood(held, rows, temperatures[own]);
  }
};

Reliability reliability_of(const HeldOutLogits& held, const HeldOutLogits& unknown,
                           const PartFits& fits) {
  Reliability out(held.outputs, held.several_labels);
  std::vector<double> probabilities;
  for (const HeldOutLogits* rows : {&held, &unknown}) {
    for (int64_t row = 0; row < rows->rows(); ++row) {
      fits.probabilities(*rows, row, probabilities);
      if (rows->several_labels)
        out.add(probabilities, rows->sets[row]);
      else
        out.add(probabilities, rows->labels[size_t(row)]);
    }
  }
  return out;
}

// For each part: fit() to the rows of the other parts.
template <typename T, typename Fit>
std::array<T, kFitParts> of_other_parts(Fit&& fit) {
  std::array<T, kFitParts> out;
  for (int part = 0; part < kFitParts; ++part) {
    out[size_t(part)] = fit(RowChoice{RowChoice::Of::others, part});
  }
  return out;
}

double likelihood_of(const HeldOutLogits& held, const PartFits& fits) {
  double sum = 0;
  for (int part = 0; part < kFitParts; ++part) {
    const int64_t rows = RowChoice{RowChoice::Of::part, part}.count(held);
    if (rows > 0) sum += double(rows) * fits.likelihood(held, part);
  }
  return sum / double(held.rows());
}

// Adds the scores of the thresholds on rows that they were not fitted to.
void fit_thresholds(const HeldOutLogits& held, const PartFits& fitted, CalibrationFit& fit) {
  TunedThresholds tuned =
      tuned_thresholds(held, fitted.temperatures, fit.calibration.temperature, kLeastLabelRows);
  const F1Scores &before = tuned.before.f1, &after = tuned.after.f1;
  fit.calibration.thresholds = std::move(tuned.thresholds);
  fit.metrics["eval_f1_macro_tuned"] = after.macro;
  fit.metrics["eval_f1_micro_tuned"] = after.micro;
  fit.report.facts.emplace_back("thresholds",
                                concat("of ", tuned.tuned, " of ", held.outputs, " labels"));
  fit.report.line +=
      concat("; thresholds of ", tuned.tuned, " of ", held.outputs, " labels: macro F1 ",
             three_digits(before.macro), " before, ", three_digits(after.macro), " after");
  fit.details +=
      concat("; thresholds of ", tuned.tuned, " of ", held.outputs, " labels, macro F1 ",
             format_fixed(before.macro, 4), " -> ", format_fixed(after.macro, 4), ", micro F1 ",
             format_fixed(before.micro, 4), " -> ", format_fixed(after.micro, 4), " likewise");
}

// The one-standard-error rule: whether `other` raises the mean log probability of the true label by
// more than the standard error of the rows' gains. Only then it is worth being less simple.
bool is_surely_better(const HeldOutLogits& held, const PartFits& own, const PartFits& other) {
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

// Uses the mix instead of the temperature if it is better on rows that it was not fitted to.
void fit_mix(const HeldOutLogits& held, PartFits& fitted, CalibrationFit& fit) {
  PartFits mixed = fitted;
  mixed.mixes = of_other_parts<MixWeights>([&](RowChoice rows) { return best_mix(held, rows); });
  const MixWeights best = best_mix(held, {});
  const double alone = likelihood_of(held, fitted), together = likelihood_of(held, mixed);
  const std::string likelihoods =
      concat("negative log likelihood ", format_fixed(alone, 4), " -> ", format_fixed(together, 4));
  if (!(together < alone) || best.ngrams == 0 || !is_surely_better(held, fitted, mixed)) {
    fit.report.facts.emplace_back("ngram_mix", concat("none: not surely better, ", likelihoods));
    fit.report.line = "no mix with n-grams, which is not surely better; ";
    fit.details = concat("mix with n-grams: ", likelihoods, " on rows it was not fitted to; ");
    return;
  }
  fitted = mixed;
  fit.mix = best;
  fit.part_mixes = *mixed.mixes;
  fit.metrics["eval_mix_model"] = fit.mix->model;
  fit.metrics["eval_mix_ngrams"] = fit.mix->ngrams;
  const std::string weights = concat(format_fixed(fit.mix->model, 3), " of the model's logits and ",
                                     format_fixed(fit.mix->ngrams, 3), " of theirs");
  fit.report.facts.emplace_back("ngram_mix", weights);
  fit.details = concat("mixed with n-grams: ", weights, ", ", likelihoods, "; ");
}

// Returns "" if a calibration can be fitted to the rows, else why not.
std::string why_not_fitted(const HeldOutLogits& held) {
  const int64_t wrong = wrong_decisions(held);
  if (held.rows() < kLeastFittingRows || wrong < kLeastWrongRows) {
    return concat("this needs ", kLeastFittingRows, " evaluation rows and ", kLeastWrongRows,
                  " wrong ", held.several_labels ? "decisions" : "ones", "; there are ",
                  held.rows(), " and ", wrong);
  }
  for (int part = 0; part < kFitParts; ++part) {
    if (RowChoice{RowChoice::Of::others, part}.count(held) == 0) {
      return concat("all ", held.rows(), " evaluation rows have the same text");
    }
  }
  return "";
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
  if (const std::string why = why_not_fitted(held); !why.empty()) {
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
  PartFits raw{};
  raw.temperatures.fill(1);
  PartFits fitted{
      of_other_parts<double>([&](RowChoice rows) { return best_temperature(held, rows); })};
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
  const double error = before.calibration_error(), calibrated = after.calibration_error();
  fit.report.line += fit.mix || better ? concat("calibrated: error ", three_digits(error),
                                                " before, ", three_digits(calibrated), " after")
                                       : concat("calibrated as it is: error ", three_digits(error));
  fit.details +=
      concat("calibrated on ", held.rows(), " evaluation rows: ",
             fit.mix ? "" : temperature_words(fit.calibration.temperature, as_it_is, with_it),
             "expected calibration error ", format_fixed(error, 4), " -> ",
             format_fixed(calibrated, 4), " on rows it was not fitted to");
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
