// Targets of readers of data: rows of tables and JSON, SQuAD files and predictions.
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/questions/answer_place.h"
#include "data/rows/csv_line.h"
#include "data/rows/records.h"
#include "data/squad.h"
#include "fuzz/target.h"
#include "tasks/scores/prediction_files.h"
#include "tasks/scores/squad_metrics.h"

namespace finetune::fuzz {
namespace {

// Properties of files of rows.
struct ReadRow {
  std::vector<std::string> values;
  uint32_t line = 0;
  friend bool operator==(const ReadRow&, const ReadRow&) = default;
};

// A reader's result: rows, or an error.
struct ReadRows {
  std::vector<std::string> columns;
  std::vector<ReadRow> rows;
  int64_t skipped = 0;
  std::string fault;
};

ReadRow copy_of(const Row& row, size_t columns) {
  require(row.values.size() == columns, "a row of ", row.values.size(), " values for ", columns,
          " columns");
  require(row.line > 0, "a row without a line");
  for (std::string_view value : row.values) {
    require(invalid_utf8(value) == std::string_view::npos, "a value is not UTF-8");
  }
  return {{row.values.begin(), row.values.end()}, row.line};
}

ReadRows rows_of_table(const fs::path& path, const RowOptions& options) {
  ReadRows out;
  try {
    const Table table = read_table({InputFile(path)}, options);
    out.columns = table.columns();
    for (const Row& row : table.rows()) out.rows.push_back(copy_of(row, out.columns.size()));
    out.skipped = table.skipped_rows();
    require(!out.rows.empty(), "a table without rows");
  } catch (const Error& error) {
    require(error.code() == ExitCode::data || error.code() == ExitCode::usage, error.what());
    out.fault = error.what();
  }
  return out;
}

ReadRows rows_of_reader(const fs::path& path, const RowOptions& options) {
  ReadRows out;
  try {
    RowReader reader(path, options);
    out.columns = reader.columns();
    uint32_t line = 0;
    for (Row row; reader.next(row); line = row.line) {
      out.rows.push_back(copy_of(row, out.columns.size()));
      require(row.line >= line, "line ", row.line, " comes behind line ", line);
    }
    out.skipped = reader.skipped_rows();
  } catch (const Error& error) {
    require(error.code() == ExitCode::data || error.code() == ExitCode::usage, error.what());
    out.fault = error.what();
  }
  return out;
}

// predictions.csv contains rows: written as CSV they must read back unchanged.
void check_written(const ReadRows& read) {
  if (read.columns.size() < 2) return;  // one empty value would be a blank line, not a row
  std::string text;
  std::vector<std::string> names;
  for (size_t i = 0; i < read.columns.size(); ++i) names.push_back(concat("column ", i));
  append_csv_row(names, text);
  for (const ReadRow& row : read.rows) append_csv_row(row.values, text);
  const RowOptions options{.delimiter = ',', .format = RowFormat::csv};
  const ReadRows again = rows_of_table(scratch_file("again.csv", text), options);
  require(again.rows.size() == read.rows.size(), again.rows.size(), " rows of ", read.rows.size(),
          " come back from CSV ", again.fault);
  for (size_t i = 0; i < read.rows.size(); ++i) {
    require(again.rows[i].values == read.rows[i].values, "row ", i, " comes back changed from CSV");
  }
}

// Both ways of reading rows give the same result.
void check_rows(const fs::path& path, const RowOptions& options) {
  const ReadRows table = rows_of_table(path, options), reader = rows_of_reader(path, options);
  if (table.fault.empty()) {
    require(reader.fault.empty(), "a table of ", table.rows.size(), " rows, but: ", reader.fault);
    require(table.columns == reader.columns, "two lists of columns");
    require(table.rows == reader.rows, "two lists of rows");
    require(table.skipped == reader.skipped, table.skipped, " and ", reader.skipped, " bad rows");
    check_written(table);
    return;
  }
  require(!reader.fault.empty() || reader.rows.empty(), reader.rows.size(),
          " rows, but: ", table.fault);
}

// CSV, TSV, plain text and their packings and encodings. The first two bytes choose options of the
// reader.
constexpr char kDelimiters[] = {'\0', ',', ';', '\t', '|', '^'};
constexpr const char* kEncodings[] = {"auto",        "utf-8",    "utf-16",      "windows-1252",
                                      "iso-8859-15", "utf-32",   "iso-2022-jp", "gb18030",
                                      "shift_jis",   "utf-16le", "utf-7",       "big5"};
constexpr const char* kNames[] = {"rows.csv", "rows.tsv", "rows.txt", "rows.csv.gz", "rows"};

template <typename Value, size_t size>
Value chosen(const Value (&from)[size], uint8_t byte) {
  return from[byte % size];
}

void check_any_rows(std::string_view input) {
  if (input.size() < 2) return;
  const auto first = uint8_t(input[0] - 'A'), second = uint8_t(input[1] - 'A');
  const RowOptions options{.skip_bad_rows = first % 2 == 1,
                           .delimiter = chosen(kDelimiters, first / 2),
                           .encoding = chosen(kEncodings, second)};
  check_rows(scratch_file(chosen(kNames, first / 12), input.substr(2)), options);
}

// Beside the window of a packed file: a row of up to 64 MiB.
const Registration kRowsTarget({.name = "rows",
                                .run = check_any_rows,
                                .memory = size_t{512} << 20});

// JSON Lines, and JSON as one array of objects.
void check_json_rows(std::string_view input) {
  for (const char* name : {"rows.jsonl", "rows.json"}) {
    const fs::path path = scratch_file(name, input);
    check_rows(path, {});
    check_rows(path, {.skip_bad_rows = true});
  }
}

const Registration kJsonRowsTarget({.name = "json_rows",
                                    .run = check_json_rows,
                                    .memory = kPackedMemory});

// SQuAD files: answers must be at their places in the contexts.
void check_questions(const SquadData& data) {
  std::set<std::string_view> ids;
  require(!data.questions.empty(), "no question and no error");
  for (const SquadQuestion& question : data.questions) {
    require(ids.insert(question.id).second, "question ", in_quotes(question.id), " comes twice");
    require(question.context < data.contexts.size(), "a question without a context");
    const std::string_view context = data.contexts[question.context];
    require(question.answers.empty() || !question.is_impossible, "an answer to what has none");
    for (const SquadAnswer& answer : question.answers) {
      if (answer.start_byte < 0) continue;
      const std::optional<AnswerPlace> place = only_place(
          context.substr(size_t(answer.start_byte), size_t(answer.end_byte - answer.start_byte)),
          answer.text);
      require(answer.start_byte < answer.end_byte && uint64_t(answer.end_byte) <= context.size() &&
                  place.has_value(),
              "answer ", in_quotes(answer.text), " is not at its place");
    }
    require(question.answers.empty() == (question.found == TargetFound::none) &&
                (question.found <= TargetFound::only_place) ==
                    (question.answers.empty() || question.target_answer()->start_byte >= 0),
            "the target of question ", in_quotes(question.id), " has no place");
  }
}

void check_squad(std::string_view input) {
  const InputFile file(scratch_file("train.json", input));
  looks_like_squad(file);
  std::string fault;
  try {
    check_questions(read_squad({file}, 0, true));
  } catch (const Error& error) {
    fault = error.what();
  }
  const SquadData data = read_squad({file}, 0, false);
  check_questions(data);
  const SquadData one = read_squad({file}, 1, false);
  require(one.questions.size() == 1 && one.questions[0].id == data.questions[0].id,
          "the first question is another one");
}

const Registration kSquadTarget({.name = "squad", .run = check_squad, .memory = kPackedMemory});

// What `score` reads: a SQuAD file, predictions for it, and no-answer scores.

// As in the official script, the best scores count all questions without an answer, but divide by
// those that were predicted.
void check_scores(const std::map<std::string, double>& scores, size_t questions) {
  for (const auto& [name, value] : scores) {
    const bool is_count = name.ends_with("_total");
    if (name.starts_with("eval_best_")) continue;
    const double most = is_count ? double(questions) : 100 + 1e-9;
    require(value >= 0 && value <= most, name, " is ", value);
  }
}

void check_predictions(std::string_view input) {
  const auto parts = parts_of(input, 3);
  const SquadData data = read_squad({InputFile(scratch_file("dev.json", parts[0]))}, 0, false);
  const PredictionFile predictions =
      read_predictions(scratch_file("predictions.json", parts[1]), data);
  require(predictions.answers.size() == data.questions.size(), "answers are not one a question");
  SquadPredictions scored;
  scored.answers = predictions.answers;
  scored.no_answer_threshold = 0.5;
  check_scores(squad_scores(data, scored, 1), data.questions.size());
  check_scores(squad_scores(data, scored, 2), data.questions.size());
  if (parts[2].empty()) return;
  scored.no_answer =
      read_no_answer_scores(scratch_file("null_odds.json", parts[2]), data, predictions);
  check_scores(squad_scores(data, scored, 2), data.questions.size());
}

const Registration kPredictionsTarget({.name = "predictions",
                                       .run = check_predictions,
                                       .memory = kPackedMemory});

}  // namespace
}  // namespace finetune::fuzz
