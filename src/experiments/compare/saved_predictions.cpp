// Reads predictions.csv, or predictions.json and the evaluation data.
#include "experiments/compare/saved_predictions.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/text/counted.h"
#include "data/labels.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

// Numbers labels by name, in order of appearance.
class ClassNumbers {
 public:
  int32_t operator()(std::string_view name) {
    return ids_.emplace(name, int32_t(ids_.size())).first->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names(ids_.size());
    for (const auto& [name, id] : ids_) names[size_t(id)] = name;
    return names;
  }

 private:
  std::unordered_map<std::string, int32_t> ids_;
};

// Reads a file of the run with read(path). Error(data) if the file is missing: a run may be kept
// without its predictions. Error(model) if it is damaged.
template <typename Read>
auto read_own_file(const fs::path& path, Read&& read) {
  require_file(path, ExitCode::data);
  try {
    return read(path);
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;
    throw model_error(error.what(), "; restore the file, or leave the run out");
  }
}

// Numbers all labels that the model has; some may occur in no row.
void number_all_classes(const RunRecord& run, ClassNumbers& number) {
  const Table table = read_own_file(run.directory / "per_class.csv", [](const fs::path& path) {
    return read_table({path}, {.delimiter = ','});
  });
  for (const Table::Row& row : table.rows()) number(row.values[0]);
}

// A file cut at the end of a row is still a table, so the run's number of rows is compared.
Table read_whole_table(const RunRecord& run, const fs::path& path) {
  const std::vector<std::string> columns{run.option("label-column")};
  Table table = read_table({path}, {.delimiter = ',', .columns = columns});
  const auto expected = parse_int(fact_named(run.facts, "eval_rows"));  // old versions lack it
  const auto found = int64_t(table.rows().size());
  if (expected && *expected != found) {
    throw data_error(printable_path(path), ": has ", counted(found, "row"),
                     ", but the run evaluated ", *expected, "; the file was ",
                     found < *expected ? "cut short" : "changed");
  }
  return table;
}

// Checks the last column: one probability for each predicted label.
void require_probabilities(const Table& table, const Table::Row& row,
                           const std::string& separator) {
  const std::string_view all = row.values.back(), labels = row.values[row.values.size() - 2];
  const bool single = separator.empty();
  const auto parts = single ? std::vector{all} : split_labels(all, separator);
  const size_t expected = single ? 1 : split_labels(labels, separator).size();
  if (parts.size() != expected) {
    throw data_error(table.where(row), ": ", counted(parts.size(), "probability", "probabilities"),
                     " of ", counted(expected, "label"));
  }
  for (std::string_view part : parts) {
    const auto number = finite_number(part);
    if (number && *number >= 0 && *number <= 1) continue;
    throw data_error(table.where(row), ": ", in_quotes(part), " is not a probability, from 0 to 1");
  }
}

void require_values(const Table& table, const Table::Row& row, size_t label) {
  for (std::string_view value : {row.values[label], row.values.back()}) {
    if (!finite_number(value)) {
      throw data_error(table.where(row), ": ", in_quotes(value), " is not a number");
    }
  }
}

// `added`: the number of columns that the run added, 2 for labels or 1 for values.
void read_rows(const RunRecord& run, size_t added, SavedRows& out) {
  const std::string& separator = run.option("multi-label");
  const auto read = [&](const fs::path& path) {
    Table table = read_whole_table(run, path);
    if (table.columns().size() < added + 2) {
      throw data_error(printable_path(path), ": has too few columns");
    }
    out.label = table.column(run.option("label-column"));
    for (const Table::Row& row : table.rows()) {
      if (added == 1)
        require_values(table, row, out.label);
      else
        require_probabilities(table, row, separator);
    }
    table.check_intact();
    return table;
  };
  out.table = read_own_file(run.directory / "predictions.csv", read);
  out.added = added;
}

}  // namespace

SavedLabels read_saved_labels(const RunRecord& run) {
  SavedLabels out;
  read_rows(run, 2, out);
  const std::string& separator = run.option("multi-label");
  const bool single = separator.empty();
  ClassNumbers number;
  if (!single) number_all_classes(run, number);
  auto set_of = [&](std::string_view value) {
    std::vector<int32_t> ids;
    if (single) return std::vector{number(value)};
    for (std::string_view part : split_labels(value, separator)) ids.push_back(number(part));
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  };
  const size_t predicted_column = out.table.columns().size() - 2;  // then its probability
  for (const Table::Row& row : out.table.rows()) {
    out.truth.push_back(set_of(row.values[out.label]));
    out.predicted.push_back(set_of(row.values[predicted_column]));
  }
  out.names = number.names();
  return out;
}

SavedValues read_saved_values(const RunRecord& run) {
  SavedValues out;
  read_rows(run, 1, out);
  for (const Table::Row& row : out.table.rows()) {
    out.truth.push_back(*finite_number(row.values[out.label]));
    out.predicted.push_back(float(*finite_number(row.values.back())));  // computed as float
  }
  return out;
}

SavedAnswers read_saved_answers(const RunRecord& run) {
  if (run.eval_files.empty()) throw data_error("the run does not say what it was evaluated on");
  const std::vector<InputFile> files(run.eval_files.begin(), run.eval_files.end());
  // A named pipe that the run read has no writer any more.
  for (const InputFile& file : files) require_file(file.name, ExitCode::data);
  const int64_t limit = parse_int(run.option("max-eval-samples")).value_or(0);
  SavedAnswers out;
  out.data = read_squad(files, limit, true);
  const fs::path file = run.directory / "predictions.json";
  out.predictions =
      read_own_file(file, [&](const fs::path& path) { return read_predictions(path, out.data); });
  require_answers(out.predictions, file);  // the data may have changed
  const std::string& version = run.option("squad-version");
  out.rules = version == "2" || (version == "auto" && out.data.has_unanswerable) ? 2 : 1;
  for (size_t q = 0; q < out.data.questions.size(); ++q) {
    const std::string* answer = out.predictions.answers[q];
    out.scores.push_back(answer ? score_answer(out.data.questions[q].answers, *answer, out.rules)
                                : AnswerScore{});
  }
  return out;
}

std::string metric_mismatch(const RunRecord& run, const std::string& metric, double found) {
  const auto value = run.metrics.find(metric);
  if (value == run.metrics.end()) return concat(run.directory.string(), ": has no ", metric);
  if (std::abs(found - value->second) <= 1e-6 * std::max(1.0, std::abs(value->second))) return "";
  return concat(run.directory.string(), ": its predictions give ", metric, " ",
                format_number(found), ", its metrics.json says ", format_number(value->second));
}

}  // namespace finetune
