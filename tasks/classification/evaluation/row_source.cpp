// Returns the evaluation rows of a training run.
#include "tasks/classification/evaluation/row_source.h"

#include "tasks/baseline.h"

namespace finetune {

Baselines RowSource::baselines() {
  return {};
}

std::optional<SampleChunk> RowsInMemory::next(std::deque<WaitingRow>& waiting,
                                              const PredictionLines* lines) {
  const int64_t begin = chunks_.rows_given();
  std::optional<SampleChunk> chunk = chunks_.next();
  for (int64_t i = begin; i < chunks_.rows_given(); ++i) {
    const auto row = size_t(i);
    WaitingRow& out = waiting.emplace_back();
    if (problem_ == ProblemType::single_label) out.label = side_.labels[row];
    if (problem_ == ProblemType::regression) out.target = side_.targets[row];
    if (problem_ == ProblemType::multi_label) {
      const auto labels = side_.label_sets[i];
      out.labels.assign(labels.begin(), labels.end());
    }
    out.repeated = !side_.repeated.empty() && side_.repeated[row] != 0;
    if (!side_.folds.empty()) out.fold = side_.folds[row];
    if (sample_) {
      out.traits = sample_->traits_of(i, side_.table->rows()[side_.rows[row]].values, side_.text,
                                      side_.set.samples, side_.set.samples_of(i));
    }
    if (lines) out.line = lines->begin(side_.table->rows()[side_.rows[row]].values);
  }
  return chunk;
}

}  // namespace finetune
