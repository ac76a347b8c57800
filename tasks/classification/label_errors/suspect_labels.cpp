// Compares each row's label with its most probable one.
#include "tasks/classification/label_errors/suspect_labels.h"

#include <algorithm>
#include <cmath>

namespace finetune {
namespace {

constexpr double kLeastProbability = 1e-12, kLikelyShare = 0.25;

std::vector<double> mean_probabilities(const OutOfFold& rows) {
  std::vector<double> means(size_t(rows.outputs));
  std::vector<int64_t> counts(means.size());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    if (!rows.is_judged[size_t(i)]) continue;
    const auto label = size_t(rows.labels[size_t(i)]);
    means[label] += double(rows.row(i)[label]);
    ++counts[label];
  }
  for (size_t label = 0; label < means.size(); ++label) {
    if (counts[label] > 0) means[label] /= double(counts[label]);
  }
  return means;
}

double score_of(double given, double likely) {
  return kLikelyShare * std::log(likely) - std::log(given + kLeastProbability);
}

}  // namespace

SuspectLabels suspect_labels(const OutOfFold& rows) {
  SuspectLabels out;
  out.means = mean_probabilities(rows);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    if (!rows.is_judged[size_t(i)]) {
      ++out.unjudged;
      continue;
    }
    const auto probabilities = rows.row(i);
    const int32_t given = rows.labels[size_t(i)];
    const auto best = std::max_element(probabilities.begin(), probabilities.end());
    const auto likely = int32_t(best - probabilities.begin());
    if (!(*best > probabilities[size_t(given)])) continue;
    out.rows.push_back({i, given, likely,
                        score_of(double(probabilities[size_t(given)]), double(*best)),
                        double(*best) >= out.means[size_t(likely)]});
  }
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  return out;
}

}  // namespace finetune
