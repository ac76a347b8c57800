// Reads tables, and sets aside the rows that training could not use.
#include "tasks/classification/check/checked_data.h"

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "data/columns/text_columns.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

// Sorts the labels of a cell, so that equal sets give equal text.
std::string sorted_labels(std::string_view value, const TaskOptions& options) {
  std::vector<std::string_view> names;
  for_each_label(value, ProblemType::multi_label, options,
                 [&](std::string_view name) { names.push_back(name); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return join({names.begin(), names.end()}, options.multi_label_separator);
}

CheckedSide read_side(const std::vector<InputFile>& files, const TaskOptions& options,
                      ProblemType problem) {
  CheckedSide side;
  RowOptions rows = row_options_of(options);
  rows.skip_bad_rows = true;  // such rows become a finding
  side.table = std::make_shared<Table>(read_table(files, rows));
  const Table& table = *side.table;
  const std::filesystem::path& file = table.files().front();
  side.text = find_text_columns(table.columns(), file, options.column_names());
  side.label = find_column(table.columns(), options.label_column, file, "--label-column");
  side.faulty = table.skipped_rows();
  side.first_fault = table.first_problem();
  for (uint32_t i = 0; i < table.rows().size(); ++i) {
    const Table::Row& row = table.rows()[i];
    const auto fault =
        row_fault(row.values, table.columns(), side.text, side.label, options, problem);
    if (fault) {
      if (side.first_fault.empty()) side.first_fault = concat(table.where(row), ": ", *fault);
      ++side.faulty;
      continue;
    }
    side.rows.push_back(i);
    side.labels.push_back(row.values[side.label]);
    side.texts.push_back(whole_text(row.values, side.text));
    side.text_sums.push_back(text_sum_of(row.values, side.text).first);
    const std::string input = linear_input(row.values, side.text);
    const std::string_view part = input;
    side.input_sums.push_back(text_sum({&part, 1}).first);
  }
  if (side.rows.empty()) {
    throw data_error(file.string(), ": no usable row",
                     side.first_fault.empty() ? "" : concat(" (", side.first_fault, ")"));
  }
  return side;
}

// Rewrites labels, also in the table, to the labels of training; several labels are sorted.
void rewrite_labels(CheckedSide& side, const TaskOptions& options, ProblemType problem,
                    const std::optional<LabelNames>& names, JoinedLabels& joined) {
  for (size_t i = 0; i < side.size(); ++i) {
    std::string_view& value = side.labels[i];
    if (const auto cell =
            rewritten_label(value, problem, options, names ? &*names : nullptr, &joined)) {
      side.table->set_value(side.rows[i], side.label, *cell);
      value = side.values(i)[side.label];
    }
    if (problem == ProblemType::multi_label) {
      value = side.label_sets.emplace_back(sorted_labels(value, options));
    }
  }
}

}  // namespace

CheckedData read_checked_data(const TaskOptions& options) {
  CheckedData data;
  data.options = options;
  data.problem = problem_type(options);
  check_problem_options(options, data.problem);
  data.train = read_side(options.train_files, options, data.problem);
  data.has_eval = !options.eval_files.empty();
  if (data.has_eval) data.eval = read_side(options.eval_files, options, data.problem);
  if (data.problem == ProblemType::regression) return data;
  std::optional<LabelNames> names;
  if (options.normalizes_labels) {
    names.emplace();
    for (std::string_view value : data.train.labels) {
      count_labels(value, data.problem, options, *names);
    }
  }
  for (CheckedSide* side : {&data.train, &data.eval}) {
    rewrite_labels(*side, options, data.problem, names, data.joined);
  }
  std::vector<std::string_view> values;
  for (std::string_view label : data.train.labels) {
    for_each_label(label, data.problem, options,
                   [&](std::string_view name) { values.push_back(name); });
  }
  data.labels = LabelMap::from_values(values);
  return data;
}

std::vector<std::string> unknown_labels(const CheckedData& data) {
  std::vector<std::string> unknown;
  if (data.problem == ProblemType::regression) return unknown;
  for (std::string_view value : data.eval.labels) {
    for_each_label(value, data.problem, data.options, [&](std::string_view name) {
      if (data.labels.find(name) < 0) unknown.emplace_back(name);
    });
  }
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  return unknown;
}

}  // namespace finetune
