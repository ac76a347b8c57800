// Fits the two weights of a mix: the likelihood with its derivatives, and bounded Newton steps.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "tasks/classification/calibration/held_out_logits.h"

namespace finetune {
namespace {

constexpr int kMostMixSteps = 100;
constexpr double kLeastLength = 1e-6;  // of Newton steps
constexpr double kLeastGain = 1e-14;   // expected gain of a step

using Pair = std::array<double, 2>;  // of the model and of the n-grams

// The negative log likelihood with its derivatives by both weights.
struct Bend {
  double value = 0;
  Pair slope{};
  double model = 0, ngrams = 0, both = 0;  // second derivatives

  void add(const Bend& other, double scale = 1) {
    value += scale * other.value;
    for (size_t i = 0; i < 2; ++i) slope[i] += scale * other.slope[i];
    model += scale * other.model;
    ngrams += scale * other.ngrams;
    both += scale * other.both;
  }
};

// Slopes: means of logits and margins minus the true label's. Curvatures: their covariance.
Bend bend_of_row(const HeldOutLogits& held, int64_t row, const Pair& at) {
  const auto logits = held.row(row), margins = held.margins_of(row);
  const auto truth = size_t(held.labels[size_t(row)]);
  const auto mixed = [&](size_t c) {
    return at[0] * double(logits[c]) + at[1] * double(margins[c]);
  };
  double highest = mixed(0);
  for (size_t c = 1; c < logits.size(); ++c) highest = std::max(highest, mixed(c));
  double sum = 0;
  Bend of;
  for (size_t c = 0; c < logits.size(); ++c) {
    const double p = std::exp(mixed(c) - highest);
    const double b = double(logits[c]) - double(logits[truth]),
                 m = double(margins[c]) - double(margins[truth]);
    sum += p;
    of.slope[0] += p * b;
    of.slope[1] += p * m;
    of.model += p * b * b;
    of.ngrams += p * m * m;
    of.both += p * b * m;
  }
  for (double& slope : of.slope) slope /= sum;
  of.model = std::max(0.0, of.model / sum - of.slope[0] * of.slope[0]);
  of.ngrams = std::max(0.0, of.ngrams / sum - of.slope[1] * of.slope[1]);
  of.both = of.both / sum - of.slope[0] * of.slope[1];
  of.value = std::log(sum) + highest - mixed(truth);
  return of;
}

// The means over the rows. Sums have one order for any number of threads.
Bend bend_at(const HeldOutLogits& held, RowChoice rows, const Pair& at) {
  const int64_t count = rows.count(held);
  Bend all;
  for (const Bend& piece :
       sums_of_pieces<Bend>(held, rows, [&](int64_t row) { return bend_of_row(held, row, at); })) {
    all.add(piece, 1 / double(count));
  }
  return all;
}

constexpr Pair kMostWeights{kMostModelWeight, kMostNgramWeight};

Pair inside_bounds(const Pair& at) {
  return {std::clamp(at[0], 0.0, kMostWeights[0]), std::clamp(at[1], 0.0, kMostWeights[1])};
}

// The Newton step in the weights that are not held at a bound; the other weights stay.
Pair newton_step(const Bend& bend, const Pair& at) {
  const auto is_held = [&](size_t i) {
    return (at[i] <= 0 && bend.slope[i] > 0) || (at[i] >= kMostWeights[i] && bend.slope[i] < 0);
  };
  const double ridge = 1e-12 * (bend.model + bend.ngrams) + 1e-300;
  const double model = bend.model + ridge, ngrams = bend.ngrams + ridge;
  if (is_held(0) && is_held(1)) return {0, 0};
  if (is_held(0)) return {0, -bend.slope[1] / ngrams};
  if (is_held(1)) return {-bend.slope[0] / model, 0};
  const double determinant = model * ngrams - bend.both * bend.both;
  if (!(determinant > 1e-14 * model * ngrams)) {  // nearly dependent
    return {-bend.slope[0] / (2 * model), -bend.slope[1] / (2 * ngrams)};
  }
  const Pair by{-(ngrams * bend.slope[0] - bend.both * bend.slope[1]) / determinant,
                -(model * bend.slope[1] - bend.both * bend.slope[0]) / determinant};
  const auto leaves = [&](size_t i) {
    return (at[i] <= 0 && by[i] < 0) || (at[i] >= kMostWeights[i] && by[i] > 0);
  };
  if (leaves(0)) return {0, -bend.slope[1] / ngrams};
  if (leaves(1)) return {-bend.slope[0] / model, 0};
  return by;
}

}  // namespace

double negative_log_likelihood(const HeldOutLogits& held, RowChoice rows,
                               const MixWeights& weights) {
  return bend_at(held, rows, {weights.model, weights.ngrams}).value;
}

MixWeights best_mix(const HeldOutLogits& held, RowChoice rows) {
  FINETUNE_CHECK(rows.count(held) > 0 && !held.several_labels &&
                 held.margins.size() == held.logits.size());
  Pair at{1, 1};
  Bend bend = bend_at(held, rows, at);
  for (int step = 0; step < kMostMixSteps; ++step) {
    const Pair by = newton_step(bend, at);
    if (-(bend.slope[0] * by[0] + bend.slope[1] * by[1]) < kLeastGain * (1 + bend.value)) break;
    // Halve the step until it is a gain: a bound may have bent it, or the curve is not a parabola.
    bool gains = false;
    for (double length = 1; length > kLeastLength && !gains; length /= 2) {
      const Pair next = inside_bounds({at[0] + length * by[0], at[1] + length * by[1]});
      const Bend there = bend_at(held, rows, next);
      gains = there.value < bend.value;
      if (!gains) continue;
      at = next;
      bend = there;
    }
    if (!gains) break;
  }
  return {at[0], at[1]};
}

}  // namespace finetune
