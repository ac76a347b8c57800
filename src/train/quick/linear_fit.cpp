// Losses and gradients over blocks of rows, and L-BFGS (Liu and Nocedal, 1989) on them.
#include "train/quick/linear_fit.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include "core/threads/parallel.h"
#include "engine/engine.h"
#include "ops/backend.h"

namespace finetune {
namespace {

// The inverse of the penalty for features whose squares add up to 1 on average (scikit-learn's C):
// of 0.1 to 1000 the best on Toronto-500's development rows and not worse on those of Toronto-4000
// (100) and banking77 (30).
constexpr double kCost = 10;
constexpr int64_t kRowsOfBlock = 2048;
constexpr size_t kMemory = 10;  // pairs of L-BFGS
constexpr int64_t kMostIterations = 200;
// Of the first gradient and of the present loss: the same stop for losses of any size.
constexpr double kGradientTolerance = 1e-6, kLossTolerance = 1e-6;
constexpr double kLeastStep = 1e-10, kSufficientDecrease = 1e-4;

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Column by column: what brings features to mean 0 and, over all columns, squares of sum 1.
struct Scaling {
  std::vector<double> mean, scale;

  Scaling(std::span<const float> features, int64_t width)
      : mean(size_t(width)), scale(size_t(width)) {
    const size_t columns = mean.size(), rows = features.size() / columns;
    for (size_t i = 0; i < features.size(); ++i) mean[i % columns] += double(features[i]);
    for (double& value : mean) value /= double(rows);
    for (size_t i = 0; i < features.size(); ++i) {
      const double distance = double(features[i]) - mean[i % columns];
      scale[i % columns] += distance * distance;
    }
    for (double& value : scale) {
      const double deviation = std::sqrt(value / double(rows));
      value = deviation > 1e-6 ? 1 / (deviation * std::sqrt(double(width))) : 0;
    }
  }
};

// Brings the targets of regression to mean 0 and deviation 1.
struct TargetScaling {
  double mean = 0, deviation = 1;

  explicit TargetScaling(const TrainingArrays& arrays) {
    if (arrays.problem != ProblemType::regression) return;
    const auto rows = double(arrays.targets.size());
    for (float target : arrays.targets) mean += double(target) / rows;
    double squares = 0;
    for (float target : arrays.targets) squares += std::pow(double(target) - mean, 2) / rows;
    if (squares > 0) deviation = std::sqrt(squares);
  }
};

// The penalized loss of all rows, as a function of weight (outputs, width) and bias (outputs).
class Problem {
 public:
  Problem(std::span<const float> features, const Scaling& scaling, const TargetScaling& targets,
          const TrainingArrays& arrays);

  int64_t parameters() const { return outputs_ * (width_ + 1); }
  double operator()(const Vector& at, Vector& gradient);
  double loss() const { return loss_; }  // of the last call, without the penalty

 private:
  template <typename T>
  T* allocate(int64_t count) {
    memory_.push_back(backend_->allocate(size_t(count) * sizeof(T)));
    return static_cast<T*>(memory_.back().get());
  }
  void weigh_rows();
  void put_targets(int64_t begin, int64_t rows);
  void compute_losses(int64_t begin, int64_t rows);

  const TrainingArrays& arrays_;
  TargetScaling target_scaling_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::shared_ptr<void>> memory_;
  int64_t rows_, width_, outputs_;
  double penalty_;
  float *features_, *weights_, *gradient_, *logits_, *losses_, *row_weights_;
  float* class_weights_ = nullptr;
  float* targets_ = nullptr;
  double loss_ = 0;
};

Problem::Problem(std::span<const float> features, const Scaling& scaling,
                 const TargetScaling& targets, const TrainingArrays& arrays)
    : arrays_(arrays),
      target_scaling_(targets),
      backend_(make_backend("cpu", threads(), "fp32")),
      rows_(arrays.samples.size()),
      width_(int64_t(scaling.mean.size())),
      outputs_(arrays.head.outputs),
      penalty_(1 / (kCost * double(rows_))),
      features_(allocate<float>(rows_ * width_)),
      weights_(allocate<float>(parameters())),
      gradient_(allocate<float>(parameters())),
      logits_(allocate<float>(kRowsOfBlock * outputs_)),
      losses_(allocate<float>(kRowsOfBlock)),
      row_weights_(allocate<float>(rows_)) {
  const size_t columns = scaling.mean.size();
  for (size_t i = 0; i < features.size(); ++i) {
    features_[i] =
        float((double(features[i]) - scaling.mean[i % columns]) * scaling.scale[i % columns]);
  }
  // The loss of several labels is their mean.
  if (arrays.problem == ProblemType::multi_label) penalty_ /= double(outputs_);
  if (arrays.problem != ProblemType::single_label) {
    targets_ = allocate<float>(kRowsOfBlock * outputs_);
  }
  if (!arrays.class_weights.empty()) {
    class_weights_ = allocate<float>(outputs_);
    std::copy(arrays.class_weights.begin(), arrays.class_weights.end(), class_weights_);
  }
  weigh_rows();
}

// The weight of each row's loss, divided by the denominator of the mean.
void Problem::weigh_rows() {
  double sum = 0;
  for (int64_t i = 0; i < rows_; ++i) {
    const double own =
        arrays_.sample_weights.empty() ? 1 : double(arrays_.sample_weights[size_t(i)]);
    sum += own * (class_weights_ ? double(class_weights_[arrays_.labels[size_t(i)]]) : 1);
  }
  for (int64_t i = 0; i < rows_; ++i) {
    const double own =
        arrays_.sample_weights.empty() ? 1 : double(arrays_.sample_weights[size_t(i)]);
    row_weights_[i] = float(own / sum);
  }
}

void Problem::put_targets(int64_t begin, int64_t rows) {
  std::fill_n(targets_, rows * outputs_, 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = size_t(begin + i);
    if (arrays_.problem == ProblemType::regression) {
      targets_[i] =
          float((double(arrays_.targets[row]) - target_scaling_.mean) / target_scaling_.deviation);
      continue;
    }
    for (int64_t k = arrays_.set_offsets[row]; k < arrays_.set_offsets[row + 1]; ++k) {
      targets_[i * outputs_ + arrays_.set_ids[size_t(k)]] = 1;
    }
  }
}

// Leaves the losses of a block of rows in losses_, and their gradient in place of the logits.
void Problem::compute_losses(int64_t begin, int64_t rows) {
  const Tensor logits = matrix(logits_, rows, outputs_), losses = vector(losses_, rows);
  const LossScale scale(row_weights_ + begin);
  const Tensor weights = class_weights_ ? vector(class_weights_, outputs_) : Tensor{};
  if (targets_) put_targets(begin, rows);
  switch (arrays_.problem) {
    case ProblemType::single_label:
      return backend_->cross_entropy(logits, arrays_.labels.data() + begin, weights,
                                     arrays_.label_smoothing, scale, losses, logits);
    case ProblemType::multi_label:
      return backend_->binary_cross_entropy(logits, matrix(targets_, rows, outputs_), {}, scale,
                                            losses, logits);
    case ProblemType::regression:
      return backend_->squared_error(logits, vector(targets_, rows), scale, losses, logits);
  }
}

double Problem::operator()(const Vector& at, Vector& gradient) {
  backend_->forget_packed();
  std::copy(at.begin(), at.end(), weights_);
  const int64_t count = outputs_ * width_;
  const Tensor weight = matrix(weights_, outputs_, width_),
               bias = vector(weights_ + count, outputs_);
  const Tensor dweight = matrix(gradient_, outputs_, width_),
               dbias = vector(gradient_ + count, outputs_);
  loss_ = 0;
  for (int64_t begin = 0; begin < rows_; begin += kRowsOfBlock) {
    const int64_t rows = std::min(kRowsOfBlock, rows_ - begin);
    const Tensor x = matrix(features_ + begin * width_, rows, width_);
    const Tensor logits = matrix(logits_, rows, outputs_);
    backend_->linear(x, weight, bias, logits);
    compute_losses(begin, rows);
    for (int64_t i = 0; i < rows; ++i) {
      loss_ += double(losses_[i]) * double(row_weights_[begin + i]);
    }
    backend_->linear_backward_weight(logits, x, dweight, dbias, begin > 0);
  }
  double squares = 0;
  for (int64_t i = 0; i < parameters(); ++i) {
    const double value = i < count ? at[size_t(i)] : 0;
    squares += value * value;
    gradient[size_t(i)] = double(gradient_[i]) + penalty_ * value;
  }
  return loss_ + penalty_ * squares / 2;
}

// The pairs of steps and changes of the gradient that stand for the inverse of the curvature.
class Curvature {
 public:
  void add(Vector step, Vector change) {
    const double product = dot(step, change);
    if (product <= 1e-12 * dot(change, change)) return;
    pairs_.push_back({std::move(step), std::move(change), product});
    if (pairs_.size() > kMemory) pairs_.pop_front();
  }
  Vector direction(const Vector& gradient) const {
    Vector out(gradient);
    std::vector<double> shares(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = dot(pairs_[i].step, out) / pairs_[i].product;
      subtract(shares[i], pairs_[i].change, out);
    }
    double scale = 1 / std::sqrt(dot(gradient, gradient));
    if (!pairs_.empty()) {
      scale = pairs_.back().product / dot(pairs_.back().change, pairs_.back().change);
    }
    for (double& value : out) value *= scale;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const double share = dot(pairs_[i].change, out) / pairs_[i].product;
      subtract(share - shares[i], pairs_[i].step, out);
    }
    for (double& value : out) value = -value;
    return out;
  }

 private:
  struct Pair {
    Vector step, change;
    double product;
  };
  static void subtract(double share, const Vector& from, Vector& out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] -= share * from[i];
  }
  std::deque<Pair> pairs_;
};

double largest(const Vector& values) {
  double most = 0;
  for (double value : values) most = std::max(most, std::abs(value));
  return most;
}

// Moves `at` to the minimum. Returns the number of iterations.
int64_t minimize(Problem& problem, Vector& at, const std::function<void()>& check_stop) {
  Curvature curvature;
  Vector gradient(at.size()), next_gradient(at.size()), next(at.size());
  double value = problem(at, gradient);
  const double least_gradient = kGradientTolerance * largest(gradient);
  for (int64_t iteration = 0; iteration < kMostIterations; ++iteration) {
    if (iteration > 0 ? largest(gradient) <= least_gradient : least_gradient == 0) return iteration;
    if (check_stop) check_stop();
    const Vector direction = curvature.direction(gradient);
    const double slope = dot(direction, gradient);
    double length = 1, there = 0;
    for (;; length /= 2) {
      if (length < kLeastStep) return iteration;
      for (size_t i = 0; i < at.size(); ++i) next[i] = at[i] + length * direction[i];
      there = problem(next, next_gradient);
      if (there <= value + kSufficientDecrease * length * slope) break;
    }
    Vector step(at.size()), change(at.size());
    for (size_t i = 0; i < at.size(); ++i) {
      step[i] = next[i] - at[i];
      change[i] = next_gradient[i] - gradient[i];
    }
    curvature.add(std::move(step), std::move(change));
    const bool is_done = value - there <= kLossTolerance * value;
    at.swap(next);
    gradient.swap(next_gradient);
    value = there;
    if (is_done) return iteration + 1;
  }
  return kMostIterations;
}

}  // namespace

LinearFit fit_linear_head(std::span<const float> features, int64_t width,
                          const TrainingArrays& arrays, const std::function<void()>& check_stop) {
  const Scaling scaling(features, width);
  const TargetScaling targets(arrays);
  Problem problem(features, scaling, targets, arrays);
  Vector at(size_t(problem.parameters()));
  LinearFit fit;
  fit.iterations = minimize(problem, at, check_stop);
  fit.loss = problem.loss() * targets.deviation * targets.deviation;
  const auto outputs = size_t(arrays.head.outputs), columns = size_t(width);
  for (size_t c = 0; c < outputs; ++c) {
    double bias = at[outputs * columns + c] * targets.deviation + targets.mean;
    for (size_t i = 0; i < columns; ++i) {
      const double weight = at[c * columns + i] * scaling.scale[i] * targets.deviation;
      fit.head.weight.push_back(float(weight));
      bias -= weight * scaling.mean[i];
    }
    fit.head.bias.push_back(float(bias));
  }
  return fit;
}

}  // namespace finetune
