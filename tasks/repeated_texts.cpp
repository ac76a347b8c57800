// Names the metrics of unseen rows, and formats the lines about them.
#include "tasks/repeated_texts.h"

#include <algorithm>
#include <cmath>

#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/scores/main_measure.h"
#include "tasks/scores/metric_table.h"

namespace finetune {
namespace {

// Losses and calibration metrics exist only for all rows.
bool is_measure(std::string_view name) {
  const MetricInfo* metric = find_metric(name);
  return metric && metric->is(kMeasure);
}

}  // namespace

std::vector<std::string> unseen_metric_names(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (is_measure(name)) out.push_back(concat(name, kUnseenSuffix));
  }
  if (!out.empty()) out.emplace_back(kRepeatedMetric);
  return out;
}

bool is_of_unseen(std::string_view metric) {
  return metric.ends_with(kUnseenSuffix) || metric == kRepeatedMetric;
}

std::string measure_of_all_rows(const std::string& metric) {
  return metric.substr(0, metric.rfind(kUnseenSuffix));
}

void add_unseen(const Metrics& unseen, int64_t repeated, Metrics& metrics) {
  metrics[kRepeatedMetric] = double(repeated);
  for (const auto& [name, value] : unseen) {
    if (is_measure(name)) metrics[concat(name, kUnseenSuffix)] = value;
  }
}

Metrics without_unseen(Metrics metrics, const std::string& kept) {
  std::erase_if(metrics, [&](const auto& metric) {
    return is_of_unseen(metric.first) && metric.first != kept;
  });
  return metrics;
}

double value_or_nan(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nan("") : found->second;
}

std::string describe_repeated(int64_t repeated, int64_t of, const char* rows,
                              std::string_view remedy) {
  if (repeated == 0) return "";
  const std::string line = concat(
      "eval: ", repeated, " of ", of, " ", rows, " (",
      format_fixed(100 * double(repeated) / double(of), 1), " %) have a text that is trained on, ",
      "too; ",
      repeated == of ? "nothing is known of new texts"
                     : concat("metrics that end with ", kUnseenSuffix, " are those of the others"));
  if (10 * repeated <= of) return line;
  return concat("warning: ", line, remedy.empty() ? "" : "; ", remedy);
}

std::string unseen_line(const Metrics& metrics) {
  const auto repeated = metrics.find(kRepeatedMetric);
  if (repeated == metrics.end() || repeated->second == 0) return "";
  const std::string name = main_measure(metrics);
  if (name.empty()) return "";
  const auto unseen = metrics.find(concat(name, kUnseenSuffix));
  if (unseen == metrics.end() || !std::isfinite(unseen->second)) {
    return "every evaluation text is trained on, too: nothing is known of new texts";
  }
  const double value = unseen->second;
  const std::string text = name == "eval_mse" ? concat("RMSE ", three_digits(std::sqrt(value)))
                           : name == "eval_accuracy"
                               ? concat("accuracy ", format_fixed(100 * value, 1), " %")
                           : name == "eval_f1" ? concat("F1 ", three_digits(value))
                                               : concat("micro F1 ", three_digits(value));
  return concat(text, " on texts that are not trained on (", format_number(repeated->second),
                " left out)");
}

}  // namespace finetune
