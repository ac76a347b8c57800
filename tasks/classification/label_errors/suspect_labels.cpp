// Compares each row's label with its most probable one.
#include "tasks/classification/label_errors/suspect_labels.h"

#include <algorithm>
#include <cmath>

namespace finetune {
namespace {

constexpr double kLeastProbability = 1e-12, kLikelyShare = 0.25;

// Per label: the mean probability of its judged rows; 0 if it has none.
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

// The most probable of the labels that have judged rows; `given` has some.
int32_t likely_label(std::span<const float> probabilities, int32_t given,
                     const std::vector<uint8_t>& has_judged_rows) {
  int32_t likely = given;
  for (size_t label = 0; label < probabilities.size(); ++label) {
    if (has_judged_rows[label] && probabilities[label] > probabilities[size_t(likely)]) {
      likely = int32_t(label);
    }
  }
  return likely;
}

double score_of(double given, double likely) {
  return kLikelyShare * std::log(likely) - std::log(given + kLeastProbability);
}

}  // namespace

SuspectLabels suspect_labels(const OutOfFold& rows) {
  SuspectLabels out;
  out.means = mean_probabilities(rows);
  std::vector<uint8_t> has_judged_rows(size_t(rows.outputs));
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    has_judged_rows[size_t(rows.labels[i])] |= rows.is_judged[i];
  }
  for (int64_t i = 0; i < rows.rows(); ++i) {
    if (!rows.is_judged[size_t(i)]) {
      ++out.unjudged;
      continue;
    }
    const auto probabilities = rows.row(i);
    const int32_t given = rows.labels[size_t(i)];
    const int32_t likely = likely_label(probabilities, given, has_judged_rows);
    if (likely == given) continue;
    const auto of_given = double(probabilities[size_t(given)]);
    const auto best = double(probabilities[size_t(likely)]);
    out.rows.push_back(
        {i, given, likely, score_of(of_given, best), best >= out.means[size_t(likely)]});
  }
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  return out;
}

}  // namespace finetune
