// Counts and losses by label, and the files confusion.csv and per_class.csv.
#include "tasks/classification/evaluation/class_counts.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/text.h"
#include "tasks/classification/predictions/prediction_format.h"

namespace finetune {
namespace {

constexpr int64_t kMostMatrixClasses = 1000;

}  // namespace

double cross_entropy_loss(std::span<const float> logits, int32_t label,
                          std::span<const float> weights, double smoothing) {
  double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(double(logit) - highest);
  const double log_sum = std::log(sum);
  const double weight = weights.empty() ? 1.0 : double(weights[size_t(label)]);
  auto weighted = [&](size_t c) {  // subtracts first: a sum with a huge logit would lose digits
    return weight * (highest - double(logits[c]) + log_sum);
  };
  double loss = (1 - smoothing) * weighted(size_t(label));
  if (smoothing == 0) return loss;
  double all = 0;
  for (size_t c = 0; c < logits.size(); ++c) all += weighted(c);
  return loss + smoothing / double(logits.size()) * all;
}

double binary_cross_entropy_loss(std::span<const float> logits, std::span<const int32_t> positive) {
  double loss = 0;
  for (float logit : logits) {  // -log(1 - sigmoid(x)) = max(x, 0) + log(1 + exp(-|x|))
    double x = logit;
    loss += std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  for (int32_t c : positive) loss -= double(logits[size_t(c)]);
  return loss / double(logits.size());
}

ClassCounts::ClassCounts(const ClassificationData& data, std::span<const float> weights,
                         double smoothing)
    : data_(data), weights_(weights), smoothing_(smoothing), counts_(size_t(data.classes())) {}

double ClassCounts::label_loss(const float* logits, int32_t label) const {
  int64_t outputs = data_.outputs();
  if (label >= outputs) return 0;
  return cross_entropy_loss({logits, size_t(outputs)}, label, weights_, smoothing_);
}

double ClassCounts::set_loss(const float* logits, std::span<const int32_t> labels) const {
  auto known = std::lower_bound(labels.begin(), labels.end(), int32_t(data_.outputs()));
  return binary_cross_entropy_loss({logits, size_t(data_.outputs())},
                                   labels.first(size_t(known - labels.begin())));
}

double ClassCounts::value_loss(float value, double target) const {
  double error = double(value) - target;
  return error * error;
}

void ClassCounts::add_label(int32_t truth, int32_t predicted, double loss) {
  count_label(counts_, truth, predicted);
  ++confusion_[uint64_t(truth) * uint64_t(data_.classes()) + uint64_t(predicted)];
  ++samples_;
  if (truth >= data_.outputs()) return;  // as torch's ignore_index
  loss_ += loss;
  denominator_ += weights_.empty() ? 1.0 : double(weights_[size_t(truth)]);
}

void ClassCounts::add_set(std::span<const int32_t> truth, std::span<const int32_t> predicted,
                          double loss) {
  whole_sets_ += count_labels(counts_, truth, predicted);
  ++samples_;
  loss_ += loss;
  denominator_ += 1;
}

void ClassCounts::add_value(double truth, float predicted, double loss) {
  truths_.push_back(truth);
  values_.push_back(predicted);
  ++samples_;
  loss_ += loss;
  denominator_ += 1;
}

Metrics ClassCounts::metrics() const {
  Metrics metrics{{"eval_loss", denominator_ == 0 ? 0 : loss_ / denominator_}};
  auto add_f1 = [&](const F1Scores& f1) {
    metrics["eval_f1_macro"] = f1.macro;
    metrics["eval_f1_micro"] = f1.micro;
    metrics["eval_f1_weighted"] = f1.weighted;
  };
  if (data_.problem == ProblemType::single_label) {
    auto scores = single_label_scores(counts_);
    metrics["eval_accuracy"] = scores.accuracy;
    metrics["eval_mcc"] = scores.mcc;
    add_f1(scores.f1);
  } else if (data_.problem == ProblemType::multi_label) {
    auto scores = multi_label_scores(counts_, whole_sets_, samples_);
    metrics["eval_accuracy"] = scores.accuracy;
    add_f1(scores.f1);
  } else {
    auto scores = regression_scores(truths_, values_);
    metrics["eval_mse"] = scores.mse;
    metrics["eval_mae"] = scores.mae;
    if (samples_ < 2) return metrics;  // the other metrics need two rows
    metrics["eval_r2"] = scores.r2;
    metrics["eval_pearson"] = scores.pearson;
    metrics["eval_spearman"] = scores.spearman;
  }
  return metrics;
}

void ClassCounts::write_files(const std::filesystem::path& directory) const {
  if (data_.problem == ProblemType::regression) return;
  write_confusion(directory / "confusion.csv");
  write_per_class(directory / "per_class.csv");
}

std::vector<ClassScores> ClassCounts::class_scores() const {
  return data_.problem == ProblemType::single_label
             ? single_label_scores(counts_).classes
             : multi_label_scores(counts_, whole_sets_, samples_).classes;
}

// One line for each pair that occurs: with many labels nearly all of a matrix would be zeros.
void ClassCounts::write_pairs(AtomicFile& file) const {
  const auto classes = uint64_t(data_.classes());
  std::vector<std::pair<uint64_t, int64_t>> pairs(confusion_.begin(), confusion_.end());
  std::sort(pairs.begin(), pairs.end());
  std::string out;
  append_csv_row(std::vector<std::string>{"true_label", "label", "rows"}, out);
  for (const auto& [pair, count] : pairs) {
    append_csv_row(
        std::vector<std::string>{data_.class_name(int64_t(pair / classes)),
                                 data_.class_name(int64_t(pair % classes)), concat(count)},
        out);
  }
  file.write(out);
}

void ClassCounts::write_confusion(const std::filesystem::path& path) const {
  AtomicFile file(path);
  std::string out;
  int64_t classes = data_.classes();
  std::vector<std::string> row;
  if (data_.problem == ProblemType::single_label && classes > kMostMatrixClasses) {
    write_pairs(file);
  } else if (data_.problem == ProblemType::single_label) {
    row = {"true_label"};
    for (int64_t c = 0; c < classes; ++c) row.push_back(data_.class_name(c));
    append_csv_row(row, out);
    for (int64_t t = 0; t < classes; ++t) {
      row = {data_.class_name(t)};
      for (int64_t c = 0; c < classes; ++c) {
        auto found = confusion_.find(uint64_t(t * classes + c));
        row.push_back(concat(found == confusion_.end() ? 0 : found->second));
      }
      append_csv_row(row, out);
      file.write(out);
      out.clear();
    }
  } else {
    row = {"label", "true_positives", "false_positives", "false_negatives", "true_negatives"};
    append_csv_row(row, out);
    std::vector<ClassScores> scores = class_scores();
    for (int64_t c = 0; c < classes; ++c) {
      const ClassScores& s = scores[size_t(c)];
      row = {data_.class_name(c), concat(s.correct), concat(s.predicted - s.correct),
             concat(s.support - s.correct), concat(samples_ - s.predicted - s.support + s.correct)};
      append_csv_row(row, out);
    }
    file.write(out);
  }
  file.commit();
}

void ClassCounts::write_per_class(const std::filesystem::path& path) const {
  std::string out;
  append_csv_row(std::vector<std::string>{"label", "precision", "recall", "f1", "support"}, out);
  std::vector<ClassScores> scores = class_scores();
  for (int64_t c = 0; c < data_.classes(); ++c) {
    const ClassScores& s = scores[size_t(c)];
    append_csv_row(
        std::vector<std::string>{data_.class_name(c), format_number(s.precision),
                                 format_number(s.recall), format_number(s.f1), concat(s.support)},
        out);
  }
  write_file(path, out);
}

}  // namespace finetune
