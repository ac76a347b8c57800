// Says how sure a classifier is, and whether its probabilities are those that predict gives.
#include "core/text/text.h"
#include "experiments/report/page/html.h"
#include "experiments/report/sections.h"

namespace finetune {
namespace {

// What brings the probabilities of predictions.csv to those of predict. A mix is in both of them.
struct Fitted {
  explicit Fitted(const RunRecord& run) {
    const auto found = run.metrics.find("eval_temperature");
    is_calibrated = found != run.metrics.end();
    is_mixed = run.is_mixed;
    if (is_calibrated && !is_mixed) temperature = found->second;
  }

  bool changes() const { return temperature != 1; }
  std::string by() const { return concat("(logits divided by ", shown_number(temperature), ")"); }

  bool is_calibrated = false, is_mixed = false;
  double temperature = 1;
};

std::string note_of(const Fitted& fitted, const RunRecord& run) {
  if (fitted.is_mixed) {
    return "The mix with n-grams calibrates them, each row's with weights fitted to other rows.";
  }
  if (!fitted.is_calibrated) return "They are not calibrated, neither here nor in predict.";
  if (!fitted.changes()) return "They stay as they are, as no temperature improves them.";
  const auto after = run.metrics.find("eval_ece_calibrated");
  return concat(
      "This is uncalibrated, as predictions.csv is; predict gives calibrated probabilities ",
      fitted.by(),
      after == run.metrics.end() ? "" : concat(", with an error of ", shown_number(after->second)),
      ".");
}

std::string several_labels_html(const RunRecord& run, const Fitted& fitted,
                                const Calibration& calibration, const std::string& of,
                                const std::string& of_bars) {
  const std::string charts =
      calibration.is_empty()
          ? ""
          : calibration.coverage_html(of, "Each label of a text counts on its own.") +
                calibration.confidence_html(of_bars);
  const std::string here =
      !fitted.is_calibrated ? " They are not calibrated, neither there nor in predict."
      : fitted.changes()
          ? concat(" They are uncalibrated; predict gives calibrated ones ", fitted.by(), ".")
          : "";
  const std::string labels =
      run.metrics.contains("eval_f1_micro_tuned")
          ? " A label is given here from one half on; predict uses tuned thresholds."
          : "";
  return concat(charts,
                "<p class=\"note\">No chart of calibration: predictions.csv has the probabilities "
                "of the predicted labels alone; the calibration error counts those of all labels.",
                here, labels, "</p>\n");
}

}  // namespace

bool is_before_calibration(const RunRecord& run) {
  return Fitted(run).changes();
}

std::string sureness_html(const RunRecord& run, const Calibration& calibration, bool single_label) {
  const Fitted fitted(run);
  const std::string of = single_label ? "predictions" : "predicted labels";
  const std::string of_bars = fitted.changes() ? concat(of, ", uncalibrated,") : of;
  if (!single_label) return several_labels_html(run, fitted, calibration, of, of_bars);
  const std::string surest = fitted.changes() ? "Probabilities are uncalibrated here: finetune "
                                                "evaluate --target-accuracy 0.95 finds the "
                                                "--min-probability."
                                              : "";
  return calibration.coverage_html(of, surest) +
         calibration.calibration_html(of, note_of(fitted, run)) +
         calibration.confidence_html(of_bars);
}

}  // namespace finetune
