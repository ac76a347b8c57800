// Reads the rows of an input once, a chunk at a time.
#include "tasks/classification/evaluation/input_rows.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr int64_t kMostExplainedRows = 256;  // at a time: each gives a row for each of its words

// Plain text has no columns, so options that name columns would be ignored.
void check_plain_text(const PredictionRequest& request) {
  if (request.column_option.empty()) return;
  throw usage_error(
      request.column_option, ": ", request.input == "-" ? "standard input" : request.input,
      " is read as one text a line and has no columns; give a .csv, .tsv or .jsonl file, or "
      "--input-format");
}

RowOptions reading(const PredictionRequest& request, const TaskOptions& options) {
  RowOptions rows = request.rows;
  const RowOptions of_task = row_options_of(options, true);
  rows.columns = of_task.columns;
  rows.optional_columns = of_task.optional_columns;
  rows.first_line_decides = request.stream && is_pipe(request.input);
  rows.may_be_empty = true;
  return rows;
}

}  // namespace

InputRows::InputRows(const PredictionRequest& request, const TaskOptions& options,
                     const TaskModel& model, int64_t max_length)
    : tokenizer_(model.tokenizer),
      name_(input_name(request.input)),
      from_pipe_(is_pipe(request.input)),
      stream_(request.stream),
      reader_(request.input, reading(request, options)) {
  const bool is_plain = reader_.format() == RowFormat::plain_text;
  if (is_plain) check_plain_text(request);
  if (is_plain && options.has_side_columns()) {
    throw data_error(name_, ": is read as one text a line; the model reads columns too: ",
                     join(options.side_columns(), ", "));
  }
  // Plain text has one column, whichever columns the model was trained on.
  text_ = is_plain ? TextColumns{{0}, std::nullopt}
                   : find_text_columns(reader_.columns(), request.input, options.column_names());
  if (request.explain) left_out_.emplace();
  texts_.max_length = max_length;
  texts_.positions = model.config.max_length();
  texts_.long_texts = options.long_texts;
}

std::optional<SampleChunk> InputRows::next(std::deque<WaitingRow>& waiting,
                                           const PredictionLines* lines) {
  const double begin = seconds_now();
  const int64_t most = left_out_ ? kMostExplainedRows : RowChunk::kMostRows;
  const bool more = chunk_.read(reader_, most, RowChunk::kMostBytes, stream_);
  if (from_pipe_) waited_ += seconds_now() - begin;
  if (!more) return std::nullopt;
  const std::span<const RowValues> rows = chunk_.rows();
  for (RowValues row : rows) {
    WaitingRow& out = waiting.emplace_back();
    if (lines) out.line = lines->begin(row);
    empty_ += empty_text_column(row, text_, reader_.columns()).has_value();
  }
  set_ = encode_rows(tokenizer_, rows, text_, texts_.max_length, texts_.long_texts);
  if (sample_) measure(waiting);
  texts_.add(set_);
  if (left_out_) leave_out_words(waiting);
  return SampleChunk{set_.samples, set_.first_window};
}

void InputRows::measure(std::deque<WaitingRow>& waiting) {
  const std::span<const RowValues> rows = chunk_.rows();
  auto row = waiting.end() - chunk_.size();
  for (int64_t i = 0; i < int64_t(rows.size()); ++i, ++row) {
    row->traits = sample_->traits_of(texts_.rows + i, rows[size_t(i)], text_, set_.samples,
                                     set_.samples_of(i));
  }
}

void InputRows::leave_out_words(std::deque<WaitingRow>& waiting) {
  left_out_->set(chunk_.rows(), text_);
  auto row = waiting.end() - chunk_.size();
  for (const auto& words : left_out_->words()) (row++)->words = words;
  set_ = encode_rows(tokenizer_, left_out_->rows(), text_, texts_.max_length, texts_.long_texts);
}

std::vector<std::string> InputRows::texts() {
  return linear_inputs(left_out_ ? left_out_->rows() : chunk_.rows(), text_);
}

std::vector<TextSum> InputRows::token_sums() const {
  return finetune::token_sums(set_);
}

std::vector<bool> InputRows::have_value_in(std::string_view name) {
  const std::span<const RowValues> rows = chunk_.rows();
  std::vector<bool> out(rows.size(), false);
  const std::vector<std::string> columns = reader_.columns();
  const size_t column = size_t(std::find(columns.begin(), columns.end(), name) - columns.begin());
  const bool is_text = std::count(text_.text.begin(), text_.text.end(), column) > 0;
  if (column == columns.size() || is_text || text_.pair == column) return out;
  const bool may_be_list =
      reader_.format() == RowFormat::jsonl || reader_.format() == RowFormat::json;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view value = trim(rows[i][column]);
    const bool is_empty_list =
        may_be_list && value.starts_with('[') && trim(value.substr(1)) == "]";
    out[i] = !value.empty() && !is_empty_list;
  }
  return out;
}

// Warns early, once there are enough rows, so that the user can stop a long prediction.
std::vector<std::string> InputRows::early_warnings() {
  constexpr int64_t kEnough = 1000;
  if (warned_early_ || texts_.rows < kEnough) return {};
  warned_early_ = true;
  std::vector<std::string> lines;
  for (const std::string& warning : text_warnings("input", texts_)) {
    lines.push_back(concat("after ", texts_.rows, " rows: ", warning));
  }
  return lines;
}

std::vector<std::string> InputRows::describe_samples() const {
  std::vector<std::string> lines = text_warnings("input", texts_);
  if (texts_.counts.truncated > 0 && describe_cut_texts("input", texts_).empty()) {
    lines.push_back(concat(texts_.counts.truncated, " of ", counted(texts_.rows, "text"),
                           texts_.counts.truncated == 1 ? " was" : " were", " cut at ",
                           cut_length(texts_)));
  }
  if (texts_.split > 0) {
    lines.push_back(concat(counted(texts_.split, "text has", "texts have"), " several windows, ",
                           counted(texts_.windows, "window"),
                           " in all; labels are of their mean logits"));
  }
  return lines;
}

std::vector<std::string> InputRows::warnings() const {
  std::vector<std::string> lines;
  if (texts_.rows == 0) lines.push_back(concat(name_, " holds no rows"));
  if (empty_ > 0) lines.push_back(counted(empty_, "text is empty", "texts are empty"));
  if (const int64_t skipped = reader_.skipped_rows(); skipped > 0) {
    lines.push_back(concat(counted(skipped, "unusable row was", "unusable rows were"), " dropped"));
  }
  return lines;
}

void InputRows::require_usable_rows() const {
  if (texts_.rows > 0 || reader_.skipped_rows() == 0) return;
  throw data_error(reader_.first_problem(), " (and no other row can be used)");
}

}  // namespace finetune
