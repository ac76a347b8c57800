// Computes accuracy, F1, Matthews, Pearson and Spearman like scikit-learn.
#include "tasks/scores/label_scores.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace finetune {
namespace {

double ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

double f1_of(int64_t correct, int64_t support, int64_t predicted) {
  return ratio(2.0 * double(correct), double(support + predicted));
}

void finish(std::vector<ClassScores>& classes) {
  for (ClassScores& c : classes) {
    c.precision = ratio(double(c.correct), double(c.predicted));
    c.recall = ratio(double(c.correct), double(c.support));
    c.f1 = f1_of(c.correct, c.support, c.predicted);
  }
}

F1Scores average(const std::vector<ClassScores>& classes, bool only_occurring) {
  int64_t correct = 0, support = 0, predicted = 0, counted = 0;
  double sum = 0, weighted = 0;
  for (const ClassScores& c : classes) {
    correct += c.correct;
    support += c.support;
    predicted += c.predicted;
    counted += !only_occurring || c.support + c.predicted > 0;
    sum += c.f1;
    weighted += c.f1 * double(c.support);
  }
  return {f1_of(correct, support, predicted), ratio(sum, double(counted)),
          ratio(weighted, double(support))};
}

double matthews(const std::vector<ClassScores>& classes, int64_t samples) {
  double s = double(samples), correct = 0, products = 0, predicted = 0, support = 0;
  for (const ClassScores& c : classes) {
    correct += double(c.correct);
    products += double(c.predicted) * double(c.support);
    predicted += double(c.predicted) * double(c.predicted);
    support += double(c.support) * double(c.support);
  }
  return ratio(correct * s - products, std::sqrt((s * s - predicted) * (s * s - support)));
}

// The coefficient of determination, like scikit-learn's r2_score. It needs two rows.
double r2_of(std::span<const double> truth, double mse) {
  const double n = double(truth.size());
  const double mean = std::accumulate(truth.begin(), truth.end(), 0.0) / n;
  double squares = 0;
  for (double value : truth) squares += (value - mean) * (value - mean);
  const bool is_constant =
      std::all_of(truth.begin(), truth.end(), [&](double value) { return value == truth[0]; });
  if (is_constant) return mse == 0 ? 1 : 0;
  return 1 - mse * n / squares;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  auto constant = [](std::span<const double> v) {
    return std::all_of(v.begin(), v.end(), [&](double value) { return value == v[0]; });
  };
  if (constant(x) || constant(y)) return 0;
  double n = double(x.size());
  double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  return std::clamp(ratio(xy, std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

// Ranks from 1. Equal values have the average of their ranks.
std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    double rank = double(begin + end + 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    begin = end;
  }
  return ranks;
}

}  // namespace

void count_label(std::vector<ClassScores>& classes, int32_t truth, int32_t predicted) {
  FINETUNE_CHECK(truth >= 0 && size_t(truth) < classes.size());
  FINETUNE_CHECK(predicted >= 0 && size_t(predicted) < classes.size());
  ++classes[size_t(truth)].support;
  ++classes[size_t(predicted)].predicted;
  classes[size_t(truth)].correct += truth == predicted;
}

SingleLabelScores single_label_scores(std::vector<ClassScores> counts) {
  SingleLabelScores scores;
  scores.classes = std::move(counts);
  int64_t correct = 0, samples = 0;
  for (const ClassScores& c : scores.classes) {
    correct += c.correct;
    samples += c.support;
  }
  finish(scores.classes);
  scores.accuracy = ratio(double(correct), double(samples));
  scores.f1 = average(scores.classes, true);
  scores.mcc = matthews(scores.classes, samples);
  return scores;
}

SingleLabelScores single_label_scores(std::span<const int32_t> truth,
                                      std::span<const int32_t> predicted, int64_t classes) {
  FINETUNE_CHECK(truth.size() == predicted.size());
  std::vector<ClassScores> counts(static_cast<size_t>(classes));
  for (size_t i = 0; i < truth.size(); ++i) count_label(counts, truth[i], predicted[i]);
  return single_label_scores(std::move(counts));
}

bool count_labels(std::vector<ClassScores>& classes, std::span<const int32_t> truth,
                  std::span<const int32_t> predicted) {
  for (int32_t id : truth) ++classes.at(size_t(id)).support;
  for (int32_t id : predicted) ++classes.at(size_t(id)).predicted;
  std::vector<int32_t> common;
  std::set_intersection(truth.begin(), truth.end(), predicted.begin(), predicted.end(),
                        std::back_inserter(common));
  for (int32_t id : common) ++classes[size_t(id)].correct;
  return truth.size() == common.size() && predicted.size() == common.size();
}

MultiLabelScores multi_label_scores(std::vector<ClassScores> counts, int64_t whole,
                                    int64_t samples) {
  MultiLabelScores scores;
  scores.classes = std::move(counts);
  finish(scores.classes);
  scores.accuracy = ratio(double(whole), double(samples));
  scores.f1 = average(scores.classes, false);
  return scores;
}

MultiLabelScores multi_label_scores(const LabelSets& truth, const LabelSets& predicted,
                                    int64_t classes) {
  FINETUNE_CHECK(truth.size() == predicted.size());
  std::vector<ClassScores> counts(static_cast<size_t>(classes));
  int64_t whole = 0;
  for (int64_t i = 0; i < truth.size(); ++i) {
    whole += count_labels(counts, truth[i], predicted[i]);
  }
  return multi_label_scores(std::move(counts), whole, truth.size());
}

RegressionScores regression_scores(std::span<const double> truth,
                                   std::span<const double> predicted) {
  FINETUNE_CHECK(truth.size() == predicted.size());
  RegressionScores scores;
  if (truth.empty()) return scores;
  for (size_t i = 0; i < truth.size(); ++i) {
    double error = predicted[i] - truth[i];
    scores.mse += error * error;
    scores.mae += std::abs(error);
  }
  scores.mse /= double(truth.size());
  scores.mae /= double(truth.size());
  scores.r2 = r2_of(truth, scores.mse);
  auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(predicted.begin(), predicted.end(), finite)) return scores;
  scores.pearson = pearson(truth, predicted);
  scores.spearman = pearson(average_ranks(truth), average_ranks(predicted));
  return scores;
}

}  // namespace finetune
