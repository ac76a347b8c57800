// Lets the n-gram process score the rows, then finds a temperature for the scores.
#include "tasks/classification/label_errors/out_of_fold.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/failure.h"
#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/ngrams/ngram_process.h"
#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/ngrams/training.h"

namespace finetune {
namespace {

// Most scores are between -1 and 1. Times ten they suit the range of best_temperature().
constexpr float kScale = 10;

void require_labels(const CheckedData& data, int folds, std::string_view option) {
  if (data.problem != ProblemType::single_label) {
    throw usage_error(option, " needs one label a row; with ",
                      data.problem == ProblemType::regression ? "--regression a row has a number"
                                                              : "--multi-label a row has several");
  }
  const std::string file = data.train.table->files().front().string();
  if (data.labels.size() < 2) {
    throw data_error(file, ": all rows have the label '", data.labels.names().at(0), "'; ", option,
                     " needs two labels at least");
  }
  const std::set<uint64_t> texts(data.train.text_sums.begin(), data.train.text_sums.end());
  if (int64_t(texts.size()) < folds) {
    throw data_error(file, ": ", texts.size(), " different texts are too few for --folds ", folds);
  }
  const int64_t scores = int64_t(data.train.size()) * data.labels.size();
  if (data.labels.size() > kMostNgramLabels || scores > kMostFoldScores) {
    throw data_error(file, ": ", data.train.size(), " rows with ", data.labels.size(),
                     " labels are too many for ", option, " (at most ", kMostNgramLabels,
                     " labels, and rows times labels at most ", kMostFoldScores, ")");
  }
}

std::vector<float> scores_of(const CheckedData& data, const std::vector<int32_t>& labels,
                             int folds) {
  TextRows rows;
  rows.columns = counts_of(data.train.text);
  for (size_t i = 0; i < labels.size(); ++i) {
    rows.add(linear_input(data.train.values(i), data.train.text), {&labels[i], 1});
  }
  rows.flush();
  try {
    return scores_out_of_fold({data.labels.size(), rows, folds});
  } catch (const std::exception& failure) {
    const Error error = error_of(failure);
    throw Error(error.code(), concat("the linear model on n-grams failed: ", error.what()));
  }
}

}  // namespace

OutOfFold out_of_fold(const CheckedData& data, int folds, std::string_view option) {
  require_labels(data, folds, option);
  OutOfFold out;
  out.outputs = data.labels.size();
  for (std::string_view label : data.train.labels) out.labels.push_back(data.labels.find(label));
  HeldOutLogits held, judged;
  held.outputs = judged.outputs = out.outputs;
  held.logits = scores_of(data, out.labels, folds);
  for (float& score : held.logits) score *= kScale;
  for (int64_t i = 0; i < out.rows(); ++i) {
    const int32_t label = out.labels[size_t(i)];
    const auto scores = held.row(i);
    out.is_judged.push_back(scores[size_t(label)] > -kUnseenScore * kScale);
    if (!out.is_judged.back()) continue;
    judged.labels.push_back(label);
    judged.logits.insert(judged.logits.end(), scores.begin(), scores.end());
  }
  const double temperature = judged.labels.empty() ? 1 : best_temperature(judged, {});
  std::vector<double> of_row;
  out.probabilities.reserve(held.logits.size());
  for (int64_t i = 0; i < out.rows(); ++i) {
    probabilities_at(held.row(i), false, temperature, of_row);
    out.probabilities.insert(out.probabilities.end(), of_row.begin(), of_row.end());
  }
  return out;
}

}  // namespace finetune
