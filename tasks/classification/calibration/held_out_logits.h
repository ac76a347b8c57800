// Logits of evaluation rows with their true labels, to fit a calibration to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/threads/parallel.h"
#include "tasks/calibration.h"
#include "tasks/scores/label_scores.h"

namespace finetune {

struct HeldOutLogits {
  int64_t outputs = 0;
  bool several_labels = false;
  std::vector<float> logits;    // (rows, outputs)
  std::vector<float> margins;   // (rows, outputs) of n-grams; empty: no mix is fitted
  std::vector<int32_t> labels;  // one label per row; in rows to fit to, all are outputs
  LabelSets sets;               // several labels per row, without unknown labels
  std::vector<uint8_t> parts;   // for cross-fitting: 0 to kFitParts - 1; equal texts share one

  int64_t rows() const { return outputs == 0 ? 0 : int64_t(logits.size()) / outputs; }
  std::span<const float> row(int64_t i) const {
    return std::span(logits).subspan(size_t(i * outputs), size_t(outputs));
  }
  std::span<const float> margins_of(int64_t i) const {
    return std::span(margins).subspan(size_t(i * outputs), size_t(outputs));
  }
};

// All rows, the rows of one part, or the rows of all other parts.
struct RowChoice {
  enum class Of { all, part, others };
  Of of = Of::all;
  int part = 0;

  bool has(const HeldOutLogits& held, int64_t row) const {
    return of == Of::all || (held.parts[size_t(row)] == part) == (of == Of::part);
  }
  int64_t count(const HeldOutLogits& held) const {
    if (of == Of::all) return held.rows();
    const auto own = int64_t(std::count(held.parts.begin(), held.parts.end(), uint8_t(part)));
    return of == Of::part ? own : held.rows() - own;
  }
};

// Sums of_row(row) over these rows by pieces of neighbours: equal for any number of threads.
template <typename Sum, typename OfRow>
std::vector<Sum> sums_of_pieces(const HeldOutLogits& held, RowChoice rows, OfRow of_row) {
  constexpr int64_t kRowsPerPiece = 256;
  std::vector<Sum> pieces(size_t((held.rows() + kRowsPerPiece - 1) / kRowsPerPiece));
  parallel_ranges(held.rows(), kRowsPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (rows.has(held, row)) pieces[size_t(begin / kRowsPerPiece)].add(of_row(row));
    }
  });
  return pieces;
}

// Probabilities of logits / temperature: softmax, or with several labels the sigmoid of each.
void probabilities_at(std::span<const float> logits, bool several_labels, double temperature,
                      std::vector<double>& out);

// Mean negative log likelihood of these rows at a temperature; with several labels, per decision.
double negative_log_likelihood(const HeldOutLogits& held, RowChoice rows, double temperature);

// The temperature within these bounds with the lowest mean negative log likelihood. The mean is
// convex in 1 / temperature, so Newton steps in a shrinking interval find it. Sums have one order.
inline constexpr double kLeastTemperature = 0.1, kMostTemperature = 10;
double best_temperature(const HeldOutLogits& held, RowChoice rows);

// The same for a mix with the n-grams' margins, one label per row. It is convex in both weights,
// from 0 to these bounds, so Newton steps on the weights that are not at a bound find the minimum.
inline constexpr double kMostModelWeight = 10, kMostNgramWeight = 100;
double negative_log_likelihood(const HeldOutLogits& held, RowChoice rows,
                               const MixWeights& weights);
MixWeights best_mix(const HeldOutLogits& held, RowChoice rows);

}  // namespace finetune
