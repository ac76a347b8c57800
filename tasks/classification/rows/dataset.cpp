// Loads training and evaluation rows, finds their labels, tokenizes samples.
#include "tasks/classification/rows/dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/columns/label_column.h"
#include "data/columns/text_columns.h"
#include "data/rows/row_files.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/rows/folds.h"
#include "tasks/classification/rows/head_labels.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/classification/rows/row_split.h"
#include "tasks/classification/side_columns/unread_values.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

// A table with its columns found and its unusable rows set aside.
struct Source {
  std::shared_ptr<Table> table;
  TextColumns text;
  size_t label = 0;
  std::vector<uint32_t> rows;  // usable rows
  int64_t dropped = 0;

  std::string_view value(uint32_t row) const { return table->rows()[row].values[label]; }
  const std::filesystem::path& file() const { return table->files().front(); }
};

Source read_source(const std::vector<InputFile>& files, const TaskOptions& options,
                   ProblemType problem, int64_t limit) {
  Source source;
  auto table = std::make_shared<Table>(
      read_table(files, row_options_of(options), options.rows.skip_bad_rows ? 0 : limit));
  source.table = table;
  source.text = find_text_columns(table->columns(), source.file(), options.column_names());
  source.label =
      find_column(table->columns(), options.label_column, source.file(), "--label-column");
  source.dropped = table->skipped_rows();
  for (uint32_t i = 0; i < table->rows().size(); ++i) {
    const Table::Row& row = table->rows()[i];
    std::optional<std::string> wrong =
        row_fault(row.values, table->columns(), source.text, source.label, options, problem);
    if (!wrong) {
      source.rows.push_back(i);
    } else if (options.rows.skip_bad_rows) {
      ++source.dropped;
    } else {
      throw bad_row(table->where(row), *wrong);
    }
  }
  if (source.rows.empty()) {
    throw data_error(source.file().string(), ": no usable row",
                     source.dropped > 0 ? concat(" (", source.dropped, " dropped)") : "");
  }
  return source;
}

// The names for --normalize-labels. A model's labels keep their names, unless several of them are
// alike. `train` is null if there are no training rows.
std::optional<LabelNames> label_names(const TaskOptions& options, ProblemType problem,
                                      const std::vector<std::string>& known, const Source* train) {
  if (!options.normalizes_labels) return std::nullopt;
  LabelNames names(!train || alike_labels(known).empty() ? known : std::vector<std::string>());
  if (!train) return names;
  for (uint32_t row : train->rows) count_labels(train->value(row), problem, options, names);
  return names;
}

void rewrite_labels(Source& source, const TaskOptions& options, ProblemType problem,
                    const std::optional<LabelNames>& names, JoinedLabels& joined) {
  for (uint32_t row : source.rows) {
    const auto cell =
        rewritten_label(source.value(row), problem, options, names ? &*names : nullptr, &joined);
    if (cell) source.table->set_value(row, source.label, *cell);
  }
}

void cut(std::vector<uint32_t>& rows, int64_t limit) {
  if (limit > 0 && int64_t(rows.size()) > limit) rows.resize(size_t(limit));
}

// Returns the labels in the order of `order` if it has exactly these labels, else unchanged.
LabelMap in_order(LabelMap labels, const std::vector<std::string>& order) {
  const std::vector<std::string>& names = labels.names();
  if (!std::is_permutation(order.begin(), order.end(), names.begin(), names.end())) return labels;
  return LabelMap(order);
}

// The distinct labels of all usable rows.
LabelMap labels_of(const Source& source, const TaskOptions& options, ProblemType problem) {
  std::vector<std::string_view> values;
  for (uint32_t row : source.rows) {
    for_each_label(source.value(row), problem, options,
                   [&](std::string_view name) { values.push_back(name); });
  }
  LabelMap labels = in_order(LabelMap::from_values(values), options.label_order);
  int64_t least = problem == ProblemType::single_label ? 2 : 1;
  if (labels.size() < least) {
    throw data_error(source.file().string(), ": column ", in_quotes(options.label_column), " has ",
                     labels.size() == 0 ? std::string("no label")
                                        : concat("one class alone, ", in_quotes(labels.names()[0])),
                     "; training needs at least ", least == 2 ? "two" : "one");
  }
  if (labels.size() > kMostLabels) {
    throw data_error(source.file().string(), ": column ", in_quotes(options.label_column), " has ",
                     labels.size(), " labels; ", kMostLabels, " are possible");
  }
  return labels;
}

// Returns a warning about labels that look wrong, or "". Error(data) if they cannot be labels and
// the run is new; a resumed run keeps the labels that it has.
std::string checked_labels(const Source& source, const LabelMap& labels,
                           const TaskOptions& options) {
  const LabelFinding finding = look_at_labels(labels.names(), int64_t(source.rows.size()));
  if (finding.text.empty()) return "";
  std::string text = concat(source.file().string(), ": column ", in_quotes(options.label_column),
                            " ", finding.text);
  if (finding.is_error && options.label_order.empty()) throw data_error(text);
  return text;
}

// Whether the model's head is for this problem type.
bool has_problem(const EncoderConfig& config, ProblemType problem) {
  const bool is_same = config.problem_type == name_of(problem);
  switch (problem) {
    case ProblemType::regression:
      return config.labels.size() == 1 && (is_same || config.problem_type.empty());
    case ProblemType::multi_label:
      return is_same;
    case ProblemType::single_label:
      return is_same || config.problem_type.empty();
  }
  return false;
}

bool knows_none(const EncoderConfig& config, const LabelMap& labels) {
  return std::none_of(config.labels.begin(), config.labels.end(),
                      [&](const std::string& name) { return labels.find(name) >= 0; });
}

// Keeps the model's head and its labels if they fit the data, with the labels that the options add
// and drop.
void keep_head(const EncoderConfig& config, const LabelMap& labels, const TaskOptions& options,
               ClassificationData& data) {
  data.keeps_head = has_problem(config, data.problem);
  if (!data.keeps_head || data.problem == ProblemType::regression) return;
  HeadLabels head =
      head_labels(config.labels, labels.names(), options.extends_head, options.drops_labels);
  data.labels = LabelMap(std::move(head.labels));
  data.keeps_head =
      std::all_of(labels.names().begin(), labels.names().end(),
                  [&](const std::string& name) { return data.labels.find(name) >= 0; });
  if (!data.keeps_head) return;
  if (options.extends_head || options.drops_labels) data.head_changes = describe_head_labels(head);
  data.head_rows = std::move(head.rows);
}

// The labels of the evaluation rows that are not in the map, sorted.
std::vector<std::string> unknown_labels(const Source& source, const LabelMap& labels,
                                        const TaskOptions& options, ProblemType problem) {
  std::vector<std::string> unknown;
  std::optional<uint32_t> first_row;
  bool single = problem == ProblemType::single_label;
  int64_t counted = 0;
  auto look = [&](std::string_view name, uint32_t row) {
    if (labels.find(name) >= 0) return;
    if (!first_row) first_row = row;
    unknown.emplace_back(name);
    ++counted;
  };
  for (uint32_t row : source.rows) {
    for_each_label(source.value(row), problem, options,
                   [&](std::string_view name) { look(name, row); });
  }
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  if (first_row && !options.ignore_unknown_labels) {
    throw unknown_labels_error(source.table->where(source.table->rows()[*first_row]), unknown,
                               labels, options);
  }
  if (single && counted == int64_t(source.rows.size())) {
    throw data_error(source.file().string(), ": column ", in_quotes(options.label_column),
                     " has no label that the model knows");
  }
  return unknown;
}

ClassificationSide make_side(const Source& source, const ClassificationData& data,
                             const TaskOptions& options, const Tokenizer& tokenizer,
                             bool is_training) {
  ClassificationSide side;
  side.rows = source.rows;
  side.text = source.text;
  side.dropped = source.dropped;
  const LabelMap unknown(data.unknown_labels);
  std::vector<RowValues> values;
  for (uint32_t row : side.rows) {
    values.emplace_back(source.table->rows()[row].values);
    add_target(source.value(row), data, unknown, options, side);
  }
  if (options.baselines) {
    side.texts = text_rows_of(
        {values, source.text, side, data.problem, is_training, options.ngram_baseline});
  }
  side.set = encode_rows(tokenizer, values, source.text, data.max_length, options.long_texts);
  return side;
}

std::vector<TextSum> text_sums(const Source& source) {
  std::vector<TextSum> sums;
  for (uint32_t row : source.rows) {
    sums.push_back(text_sum_of(source.table->rows()[row].values, source.text));
  }
  return sums;
}

// Puts equal texts into the same part, and spreads each label's other texts evenly.
std::vector<uint8_t> fit_parts_of(const ClassificationSide& side,
                                  const std::vector<TextSum>& sums) {
  std::vector<uint64_t> texts;
  RowLabels labels;
  for (size_t row = 0; row < sums.size(); ++row) {
    texts.push_back(sums[row].first);
    labels.add(side.labels.empty() ? side.label_sets[int64_t(row)]
                                   : std::span(&side.labels[row], 1));
  }
  const std::vector<int32_t> parts = folds_of(texts, labels, kFitParts);
  return {parts.begin(), parts.end()};
}

void add_warning(std::string warning, ClassificationData& data) {
  if (!warning.empty()) data.label_warnings.push_back(std::move(warning));
}

void take_column_names(const Source& source, ClassificationData& data) {
  const auto take = [&](const std::vector<size_t>& columns, std::vector<std::string>& names) {
    for (size_t column : columns) names.push_back(source.table->columns()[column]);
  };
  take(source.text.text, data.text_columns);
  take(source.text.numbers, data.number_columns);
  take(source.text.categories, data.category_columns);
}

}  // namespace

std::string_view name_of(ProblemType problem) {
  switch (problem) {
    case ProblemType::single_label:
      return "single_label_classification";
    case ProblemType::multi_label:
      return "multi_label_classification";
    case ProblemType::regression:
      return "regression";
  }
  return "";
}

ProblemType problem_type(const ClassificationOptions& options) {
  if (options.regression) return ProblemType::regression;
  return options.multi_label_separator.empty() ? ProblemType::single_label
                                               : ProblemType::multi_label;
}

ClassificationData data_without_rows(const TaskOptions& options, const Tokenizer& tokenizer,
                                     const EncoderConfig& config) {
  ClassificationData data;
  data.problem = problem_type(options);
  check_problem_options(options, data.problem);
  data.max_length = checked_max_length(options.max_length, config, tokenizer.special(),
                                       !options.text_pair_column.empty());
  data.positions = config.max_length();
  return data;
}

ClassificationData load_classification_data(const TaskOptions& options, const Tokenizer& tokenizer,
                                            const EncoderConfig& config, bool model_head) {
  ClassificationData data = data_without_rows(options, tokenizer, config);
  std::optional<Source> train, eval;
  std::optional<LabelNames> names;
  JoinedLabels joined;
  const std::vector<std::string> known = model_head ? config.labels : std::vector<std::string>();
  if (options.train_files.empty()) names = label_names(options, data.problem, known, nullptr);
  if (!options.train_files.empty()) {
    train = read_source(options.train_files, options, data.problem, 0);
    take_column_names(*train, data);
    names = label_names(options, data.problem, known, &*train);
    rewrite_labels(*train, options, data.problem, names, joined);
    LabelMap labels;
    if (data.problem != ProblemType::regression) labels = labels_of(*train, options, data.problem);
    if (model_head) keep_head(config, labels, options, data);
    if (data.keeps_head && options.extends_head && knows_none(config, labels)) {
      add_warning(
          "--extend-head: the data has none of the head's labels; check that they are written "
          "alike (--normalize-labels), or start a new head with --reinit-head",
          data);
    }
    const bool knows_labels = data.keeps_head && !knows_none(config, labels);
    if (data.problem == ProblemType::single_label && !knows_labels) {
      add_warning(checked_labels(*train, labels, options), data);
    }
    add_warning(list_warning(labels.names(), options), data);
    add_warning(missing_warning(labels.names()), data);
    if (!data.keeps_head || data.problem == ProblemType::regression)
      data.labels = std::move(labels);
  } else {
    const EncoderConfig without_head;
    const std::vector<std::string>& own = trained_labels(model_head ? config : without_head);
    data.keeps_head = true;
    if (data.problem != ProblemType::regression) data.labels = LabelMap(own);
  }
  if (!options.eval_files.empty()) {
    eval = read_source(options.eval_files, options, data.problem, options.max_eval_samples);
    rewrite_labels(*eval, options, data.problem, names, joined);
    if (data.text_columns.empty()) take_column_names(*eval, data);
  } else if (options.eval_fraction > 0 && train) {
    const UsableRows usable{*train->table, train->rows, train->text, train->label};
    const HoldOut parts = split_rows(usable, options, data);
    data.split = describe_split(usable, parts, options);
    data.split_fault = split_fault(usable, parts, options, data);
    if (parts.train.empty()) {
      throw usage_error("--eval-fraction ", options.eval_fraction, " of ",
                        counted(train->rows.size(), "row"), " leaves none for training");
    }
    eval = train;
    eval->dropped = 0;  // counted with training
    auto pick = [&](const std::vector<uint32_t>& places) {
      std::vector<uint32_t> rows;
      for (uint32_t place : places) rows.push_back(eval->rows[place]);
      return rows;
    };
    train->rows = pick(parts.train);
    eval->rows = pick(parts.eval);
  }
  if (train) {
    cut(train->rows, options.max_train_samples);
    if (options.folds > 0) eval.emplace(*train).dropped = 0;
    data.train = make_side(*train, data, options, tokenizer, true);
    data.train.numbers = number_columns_of(*train->table, train->rows, train->text.numbers);
    if (options.baselines) data.trained_texts = TrainedTexts(text_sums(*train));
    train->table->check_intact();
    train.reset();
  }
  if (eval) {
    cut(eval->rows, options.max_eval_samples);
    if (data.problem != ProblemType::regression) {
      data.unknown_labels = unknown_labels(*eval, data.labels, options, data.problem);
    }
    data.has_eval = true;
    data.eval = make_side(*eval, data, options, tokenizer, false);
    const std::vector<TextSum> sums = text_sums(*eval);
    if (options.baselines && !options.train_files.empty() && options.folds == 0) {
      for (const TextSum& sum : sums)
        data.eval.repeated.push_back(data.trained_texts.contains(sum));
    }
    if (data.problem != ProblemType::regression) data.eval.parts = fit_parts_of(data.eval, sums);
    eval->table->keep(eval->rows);  // kept until predictions are written, even if the file changes
    data.eval.table = eval->table;
  }
  data.joined_labels = joined.describe();
  std::vector<std::string> all = data.labels.names();
  all.insert(all.end(), data.unknown_labels.begin(), data.unknown_labels.end());
  add_warning(alike_warning(all), data);
  return data;
}

void require_columns(const TaskOptions& options) {
  for (const InputFile& file : options.train_files) {
    RowFiles rows({file}, row_options_of(options));
    find_text_columns(rows.columns(), rows.first_file(), options.column_names());
    find_column(rows.columns(), options.label_column, rows.first_file(), "--label-column");
  }
}

std::string describe_labels(const ClassificationData& data, const TaskOptions& options) {
  if (data.problem == ProblemType::regression) {
    return concat("regression on column ", in_quotes(options.label_column));
  }
  return concat(counted(data.labels.size(), "label"),
                data.problem == ProblemType::multi_label ? ", any number a row" : "");
}

std::string describe_unknown_labels(const ClassificationData& data, int64_t rows_with_unknown,
                                    int64_t rows) {
  return concat("eval: ", rows_with_unknown, " of ", counted(rows, "row"),
                rows_with_unknown == 1 ? " has a label" : " have labels", " unknown to the model (",
                data.unknown_labels.size(), " distinct); ",
                rows_with_unknown == 1 ? "it counts" : "they count", " as wrong");
}

}  // namespace finetune
