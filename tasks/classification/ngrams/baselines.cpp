// Keeps rows for the n-gram process, and computes the metrics of its predictions.
#include "tasks/classification/ngrams/baselines.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/text/shown_numbers.h"
#include "tasks/classification/evaluation/class_counts.h"
#include "tasks/classification/ngram_mix/fold_margins.h"
#include "tasks/classification/ngrams/ngram_process.h"
#include "tasks/classification/ngrams/training.h"

namespace finetune {
namespace {

constexpr std::string_view kOfEvaluation = "eval_";

std::span<const int32_t> labels_of(const ClassificationSide& side, ProblemType problem, size_t i) {
  if (problem == ProblemType::single_label) return {&side.labels[i], 1};
  if (problem == ProblemType::multi_label) return side.label_sets[int64_t(i)];
  return {};
}

int64_t text_bytes(const RowsToKeep& keep) {
  int64_t bytes = 0;
  for (RowValues row : keep.rows) {
    for (size_t column : keep.columns.text) bytes += int64_t(row[column].size());
    if (keep.columns.pair) bytes += int64_t(row[*keep.columns.pair].size());
  }
  return bytes;
}

}  // namespace

std::shared_ptr<TextRows> text_rows_of(const RowsToKeep& keep) {
  auto out = std::make_shared<TextRows>();
  const bool is_regression = keep.problem == ProblemType::regression;
  size_t stride = 1;
  if (keep.is_training) {
    stride = std::max<size_t>(
        1, size_t((text_bytes(keep) + kMostTrainingBytes - 1) / kMostTrainingBytes));
  }
  for (size_t i = 0; i < keep.rows.size(); i += stride) {
    out->add(keep.has_texts ? linear_input(keep.rows[i], keep.columns) : std::string(),
             labels_of(keep.side, keep.problem, i), is_regression ? keep.side.targets[i] : 0);
  }
  out->flush();
  out->of = int64_t(keep.rows.size());
  out->columns = counts_of(keep.columns);
  return out;
}

namespace {

// Adds metrics of predictions for the rows in `eval`; next() returns them in order.
template <typename Next>
void add_metrics(const ClassificationData& data, const TextRows& eval, const char* prefix,
                 Next&& next, Metrics& metrics) {
  ClassCounts tally(data, {}, 0);
  TextRowReader reader(eval.descriptor());
  for (TextRow row; reader.next(row);) {
    const TextRow& predicted = next();
    switch (data.problem) {
      case ProblemType::single_label:
        tally.add_label(row.labels.at(0), predicted.labels.at(0), 0);
        break;
      case ProblemType::multi_label:
        tally.add_set(row.labels, predicted.labels, 0);
        break;
      case ProblemType::regression:
        tally.add_value(row.target, float(predicted.target), 0);
        break;
    }
  }
  for (const auto& [name, value] : tally.metrics()) {
    if (name != "eval_loss") metrics[prefix + name.substr(kOfEvaluation.size())] = value;
  }
}

void add_columns(const TextRows& train, Metrics& metrics) {
  const size_t columns = train.columns.all();
  if (columns > 0) metrics["baseline_ngram_columns"] = double(columns);
}

void add_ngrams(const ClassificationData& data, const TextRows& train, const TextRows& eval,
                const Descriptor* model, Baselines& out) {
  const double start = seconds_now();
  const TextRows predictions;
  const double memory_mb =
      predict_with_ngrams({data.problem, data.labels.size(), train, eval, predictions, model});
  TextRowReader reader(predictions.descriptor());
  TextRow predicted;
  const auto next = [&]() -> const TextRow& {
    if (!reader.next(predicted)) throw device_error("its predictions are not whole");
    return predicted;
  };
  add_metrics(data, eval, "baseline_ngram_", next, out.metrics);
  const double seconds = seconds_now() - start;
  out.metrics["baseline_ngram_runtime"] = seconds;
  add_columns(train, out.metrics);
  out.lines.push_back(concat(
      "n-gram baseline: a linear model trained on ", with_thousands(double(train.size())),
      train.size() < train.of ? concat(" of ", with_thousands(double(train.of))) : "", " rows in ",
      format_fixed(seconds, 1), " s and ", format_fixed(memory_mb, 0), " MiB of its own"));
}

// Tokens are not needed: only the rows' texts and labels are read.
class UnreadTokens final : public Tokenizer {
 public:
  UnreadTokens() { special_ = {0, 0, 0, 0}; }
  void encode(std::string_view, TokenBuffer&) const override {}
  int32_t vocabulary_size() const override { return 1; }
  std::string_view token(int32_t) const override { return ""; }
  bool continues_word(int32_t) const override { return false; }
  std::vector<std::filesystem::path> files() const override { return {}; }
};

// The majority of rows that are not in memory.
Majority majority_in(const TextRows& rows, const ClassificationData& data) {
  ClassificationSide side;
  TextRowReader reader(rows.descriptor());
  for (TextRow row; reader.next(row);) {
    switch (data.problem) {
      case ProblemType::single_label:
        side.labels.push_back(row.labels.at(0));
        break;
      case ProblemType::multi_label:
        side.label_sets.push_back(row.labels);
        break;
      case ProblemType::regression:
        side.targets.push_back(row.target);
        break;
    }
  }
  return majority_of(data, side);
}

}  // namespace

Majority majority_of(const ClassificationData& data, const ClassificationSide& side) {
  Majority out;
  std::vector<int64_t> counts(size_t(data.classes()));
  if (data.problem == ProblemType::regression) {
    for (double target : side.targets) out.number += target / double(side.targets.size());
  } else if (data.problem == ProblemType::single_label) {
    for (int32_t label : side.labels) ++counts[size_t(label)];
    out.labels = {int32_t(std::max_element(counts.begin(), counts.end()) - counts.begin())};
  } else {
    for (int32_t label : side.label_sets.ids) ++counts[size_t(label)];
    for (size_t i = 0; i < counts.size(); ++i) {
      if (2 * counts[i] > side.label_sets.size()) out.labels.push_back(int32_t(i));
    }
  }
  return out;
}

std::string whole_text(RowValues row, const TextColumns& columns) {
  std::string buffer;
  std::string text(joined_text(row, columns, buffer));
  if (columns.pair) text.append(" ").append(row[*columns.pair]);
  return text;
}

std::string linear_input(RowValues row, const TextColumns& columns) {
  return with_columns(whole_text(row, columns), row, columns);
}

std::vector<std::string> linear_inputs(std::span<const RowValues> rows,
                                       const TextColumns& columns) {
  std::vector<std::string> inputs;
  for (RowValues row : rows) inputs.push_back(linear_input(row, columns));
  return inputs;
}

Baselines baselines_of(const ClassificationData& data, const Majority& majority,
                       const TextRows* train, const TextRows& eval, const Descriptor* model) {
  Baselines out;
  const TextRow same{"", majority.labels, majority.number};
  add_metrics(
      data, eval, "baseline_majority_", [&]() -> const TextRow& { return same; }, out.metrics);
  if (!train || !has_ngram_process()) return out;
  if (data.labels.size() > kMostNgramLabels) {
    out.lines.push_back(concat("no n-gram baseline: of ", data.labels.size(), " labels, ",
                               kMostNgramLabels, " are the most for it"));
    return out;
  }
  try {
    add_ngrams(data, *train, eval, model, out);
  } catch (const std::exception& failure) {
    const Error error = error_of(failure);
    throw Error(error.code(), concat("the linear model on n-grams failed: ", error.what()));
  }
  return out;
}

Baselines baselines_of_folds(const ClassificationData& data, const Majority& majority,
                             const TextRows* train, const TextRows& rows, const Descriptor* model,
                             std::vector<float>& margins) {
  Baselines out = baselines_of(data, majority, nullptr, rows);
  if (!train || !has_ngram_process()) return out;
  const int64_t outputs = data.labels.size();
  if (data.problem == ProblemType::regression || train->size() < train->of ||
      outputs > kMostNgramLabels) {
    out.lines.push_back(concat("no n-gram baseline with --folds: it needs labels, at most ",
                               kMostNgramLabels, ", and at most 12 MiB of text"));
    return out;
  }
  try {
    margins = fold_margins(rows, data.eval.folds, data.problem, outputs);
    auto at = margins.begin();
    TextRow predicted;
    const auto next = [&]() -> const TextRow& {
      predicted.labels = labels_of_scores(std::vector<double>(at, at + outputs), data.problem);
      at += outputs;
      return predicted;
    };
    add_metrics(data, rows, "baseline_ngram_", next, out.metrics);
    add_columns(*train, out.metrics);
    if (model) {
      const TextRows none, predictions;
      predict_with_ngrams({data.problem, outputs, *train, none, predictions, model});
    }
    out.lines.emplace_back("n-gram baseline: a linear model for each fold, trained on the others");
  } catch (const std::exception& failure) {
    const Error error = error_of(failure);
    throw Error(error.code(), concat("the linear model on n-grams failed: ", error.what()));
  }
  return out;
}

TrainedRows read_trained_rows(const TaskOptions& training, const EncoderConfig& config,
                              const ClassificationData& data) {
  ClassificationData trained = load_classification_data(training, UnreadTokens(), config, true);
  if (trained.labels.names() != data.labels.names()) {
    throw data_error(training.train_files.front().name.string(),
                     ": has labels that the model does not know");
  }
  return {majority_of(trained, trained.train),
          training.ngram_baseline ? std::move(trained.train.texts) : nullptr,
          std::move(trained.trained_texts)};
}

Baselines file_baselines(const ClassificationData& data, const TrainedRows* trained,
                         TextRows& eval) {
  eval.flush();
  eval.of = eval.size();
  if (!trained) return baselines_of(data, majority_in(eval, data), nullptr, eval);
  return baselines_of(data, trained->majority, trained->texts.get(), eval);
}

}  // namespace finetune
