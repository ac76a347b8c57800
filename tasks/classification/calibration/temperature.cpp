// Fits the temperature by Newton steps on the slope of the likelihood.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tasks/classification/calibration/held_out_logits.h"

namespace finetune {
namespace {

constexpr int kMostSteps = 100;

// Derivatives of the negative log likelihood by b = 1 / temperature.
struct Slope {
  double value = 0, first = 0, second = 0;

  void add(const Slope& other) {
    value += other.value;
    first += other.first;
    second += other.second;
  }
};

// log(sum(exp(b * z))) - b * z[truth]. Its first derivative is the mean of z minus z[truth], the
// second is the variance of z.
Slope of_label(std::span<const float> logits, int32_t truth, double b) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0, first = 0, second = 0;
  for (float logit : logits) {
    const double z = double(logit) - highest, weight = std::exp(b * z);
    sum += weight;
    first += weight * z;
    second += weight * z * z;
  }
  const double mean = first / sum, own = double(logits[size_t(truth)]) - highest;
  return {std::log(sum) - b * own, mean - own, std::max(0.0, second / sum - mean * mean)};
}

// log(1 + exp(b * z)), minus b * z if the row has the label.
Slope of_decision(double z, bool has, double b) {
  const double x = b * z, e = std::exp(-std::abs(x));
  const double p = x >= 0 ? 1 / (1 + e) : e / (1 + e);
  return {std::max(x, 0.0) + std::log1p(e) - (has ? x : 0), z * (p - (has ? 1 : 0)),
          z * z * p * (1 - p)};
}

Slope of_row(const HeldOutLogits& held, int64_t row, double b) {
  const std::span<const float> logits = held.row(row);
  if (!held.several_labels) return of_label(logits, held.labels[size_t(row)], b);
  const auto truth = held.sets[row];
  auto next = truth.begin();
  Slope slope;
  for (size_t c = 0; c < logits.size(); ++c) {
    const bool has = next != truth.end() && *next == int32_t(c);
    if (has) ++next;
    slope.add(of_decision(double(logits[c]), has, b));
  }
  return slope;
}

// The means over the rows.
Slope slope_at(const HeldOutLogits& held, RowChoice rows, double b) {
  const int64_t count = rows.count(held);
  Slope all;
  for (const Slope& piece :
       sums_of_pieces<Slope>(held, rows, [&](int64_t row) { return of_row(held, row, b); })) {
    all.add(piece);
  }
  const double decisions = double(count) * double(held.several_labels ? held.outputs : 1);
  return {all.value / decisions, all.first / decisions, all.second / decisions};
}

}  // namespace

void probabilities_at(std::span<const float> logits, bool several_labels, double temperature,
                      std::vector<double>& out) {
  out.resize(logits.size());
  if (several_labels) {
    for (size_t c = 0; c < logits.size(); ++c) {
      out[c] = 1.0 / (1.0 + std::exp(-double(logits[c]) / temperature));
    }
    return;
  }
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    out[c] = std::exp((double(logits[c]) - highest) / temperature);
    sum += out[c];
  }
  for (double& probability : out) probability /= sum;
}

double negative_log_likelihood(const HeldOutLogits& held, RowChoice rows, double temperature) {
  return slope_at(held, rows, 1 / temperature).value;
}

double best_temperature(const HeldOutLogits& held, RowChoice rows) {
  FINETUNE_CHECK(rows.count(held) > 0);
  double low = 1 / kMostTemperature, high = 1 / kLeastTemperature, b = 1;
  if (slope_at(held, rows, low).first >= 0) return kMostTemperature;
  if (slope_at(held, rows, high).first <= 0) return kLeastTemperature;
  for (int step = 0; step < kMostSteps && high - low > 1e-12 * high; ++step) {
    const Slope slope = slope_at(held, rows, b);
    (slope.first > 0 ? high : low) = b;
    const double newton = slope.second > 0 ? b - slope.first / slope.second : low;
    const double next = newton > low && newton < high ? newton : (low + high) / 2;
    if (std::abs(next - b) <= 1e-12 * b) return 1 / next;
    b = next;
  }
  return 1 / b;
}

}  // namespace finetune
