// Tests whether label names are nearer to their own samples than other names are.
#include "train/quick/named_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace finetune {
namespace {

using Matrix = std::vector<double>;  // (labels, width)

// In standard deviations of what names that are dealt out at random reach. Codes as names ("17",
// "A1", "xqz") reached at most 3.1 on banking77 and Toronto, the true names at least 5.
constexpr double kEvidence = 3;

// The names' distances from the mean name, and the mean features of each label from those of all
// labels, both in units of each column's deviation over the samples.
struct LabelMeans {
  Matrix samples, names;

  LabelMeans(std::span<const float> features, std::span<const float> of_names, size_t width,
             std::span<const int32_t> labels)
      : samples(of_names.size()), names(of_names.begin(), of_names.end()) {
    std::vector<double> counts(of_names.size() / width), mean(width), deviation(width);
    for (size_t i = 0; i < features.size(); ++i) {
      samples[size_t(labels[i / width]) * width + i % width] += double(features[i]);
      mean[i % width] += double(features[i]) / double(labels.size());
    }
    for (size_t i = 0; i < features.size(); ++i) {
      deviation[i % width] += std::pow(double(features[i]) - mean[i % width], 2);
    }
    for (int32_t label : labels) counts[size_t(label)] += 1;
    for (size_t i = 0; i < samples.size(); ++i) {
      const double count = counts[i / width];
      samples[i] = count > 0 ? samples[i] / count : mean[i % width];
    }
    for (double& value : deviation) value = std::sqrt(value / double(labels.size()));
    scale(deviation, samples);
    scale(deviation, names);
  }

 private:
  static void scale(const std::vector<double>& deviation, Matrix& rows) {
    const size_t width = deviation.size();
    std::vector<double> mean(width);
    for (size_t i = 0; i < rows.size(); ++i) mean[i % width] += rows[i];
    for (double& value : mean) value /= double(rows.size() / width);
    for (size_t i = 0; i < rows.size(); ++i) {
      const double unit = deviation[i % width];
      rows[i] = unit > 1e-6 ? (rows[i] - mean[i % width]) / unit : 0;
    }
  }
};

// rows^T rows (width, width).
Matrix products(const Matrix& rows, size_t width) {
  Matrix out(width * width);
  for (size_t begin = 0; begin < rows.size(); begin += width) {
    const double* row = rows.data() + begin;
    for (size_t i = 0; i < width; ++i) {
      for (size_t j = 0; j < width; ++j) out[i * width + j] += row[i] * row[j];
    }
  }
  return out;
}

double dot(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The sum of each name's product with its own label's mean, against all ways to deal the names out
// to the labels: these have a sum of 0 on average, and this deviation (Hoeffding, 1951). Two labels
// reach 1 at most, three reach 2.
bool are_near(std::span<const float> features, std::span<const float> names, size_t width,
              std::span<const int32_t> labels) {
  const LabelMeans means(features, names, width, labels);
  const double others = double(names.size() / width) - 1;
  const double squares = dot(products(means.samples, width), products(means.names, width));
  if (others < 1 || squares <= 0) return false;
  const double deviation = std::sqrt(squares / others);
  return dot(means.samples, means.names) >= std::min(kEvidence, others / 2) * deviation;
}

}  // namespace

LinearFit fit_named_head(std::span<const float> features, int64_t width,
                         const TrainingArrays& arrays, const std::function<void()>& check_stop) {
  const auto samples = size_t(arrays.samples.size());
  const auto of_samples = features.first(samples * size_t(width));
  const auto of_names = features.subspan(of_samples.size());
  if (of_names.empty() || !are_near(of_samples, of_names, size_t(width), arrays.labels)) {
    return fit_linear_head(of_samples, width, arrays, check_stop);
  }
  std::vector<int32_t> labels(arrays.labels.begin(), arrays.labels.end());
  for (int32_t label = 0; label < arrays.head.outputs; ++label) labels.push_back(label);
  std::vector<float> weights(arrays.sample_weights.begin(), arrays.sample_weights.end());
  if (!weights.empty()) weights.resize(labels.size(), 1);
  const std::vector<uint32_t> second(labels.size());  // the fit reads its size alone
  TrainingArrays named = arrays;
  named.samples = {};
  named.samples.second = second;
  named.labels = labels;
  named.sample_weights = weights;
  LinearFit fit = fit_linear_head(features, width, named, check_stop);
  fit.has_names = true;
  return fit;
}

}  // namespace finetune
