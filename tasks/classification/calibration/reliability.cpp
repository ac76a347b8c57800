// Counts rows by the bins of their probabilities.
#include "tasks/classification/calibration/reliability.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace finetune {
namespace {

constexpr double kUnit = 1.0 / double(int64_t{1} << 32);
constexpr int64_t kCarry = int64_t{1} << 62;

int64_t in_units(double value) {
  return std::llround(value / kUnit);
}

}  // namespace

Reliability::Reliability(int64_t outputs, bool several_labels)
    : outputs_(outputs), bins_(several_labels ? size_t(outputs) : 1) {}

void Reliability::count(Bins& bins, double probability, bool right) {
  const double clamped = std::clamp(probability, 0.0, 1.0);
  const double place = std::floor(clamped * double(kReliabilityBins));
  Bin& bin = bins[size_t(std::min(place, double(kReliabilityBins - 1)))];
  ++bin.rows;
  bin.right += right;
  bin.probability += in_units(clamped);
}

void Reliability::add(std::span<const double> probabilities, int32_t truth) {
  FINETUNE_CHECK(int64_t(probabilities.size()) == outputs_);
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  count(bins_[0], *best, best - probabilities.begin() == truth);
  double squares = truth < outputs_ ? 0 : 1;
  for (size_t c = 0; c < probabilities.size(); ++c) {
    const double distance = probabilities[c] - (int32_t(c) == truth ? 1 : 0);
    squares += distance * distance;
  }
  squares_ += in_units(squares);
  if (squares_ >= kCarry) {
    squares_ -= kCarry;
    ++squares_carried_;
  }
  ++rows_;
}

void Reliability::add(std::span<const double> probabilities, std::span<const int32_t> truth) {
  FINETUNE_CHECK(int64_t(probabilities.size()) == outputs_);
  double squares = 0;
  auto next = truth.begin();
  for (size_t c = 0; c < probabilities.size(); ++c) {
    while (next != truth.end() && *next < int32_t(c)) ++next;
    const bool has = next != truth.end() && *next == int32_t(c);
    count(bins_[c], probabilities[c], has);
    const double distance = probabilities[c] - (has ? 1 : 0);
    squares += distance * distance;
  }
  squares_ += in_units(squares / double(outputs_));
  ++rows_;
}

double Reliability::calibration_error() const {
  if (rows_ == 0) return 0;
  double sum = 0;
  for (const Bins& bins : bins_) {
    for (const Bin& bin : bins)
      sum += std::abs(double(bin.right) - double(bin.probability) * kUnit);
  }
  return sum / (double(rows_) * double(bins_.size()));
}

double Reliability::brier_score() const {
  if (rows_ == 0) return 0;
  return (double(squares_) + double(squares_carried_) * double(kCarry)) * kUnit / double(rows_);
}

}  // namespace finetune
