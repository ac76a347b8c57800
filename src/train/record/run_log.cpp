// Writes metrics.jsonl and the tables beside it.
#include "train/record/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/log.h"
#include "data/rows/csv_line.h"

namespace finetune {
namespace {

bool is_step(const NamedNumbers& numbers) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [](const auto& number) { return number.first == "loss"; });
}

// Returns only the lines of steps, or only those of evaluations.
std::vector<NamedNumbers> those_of(const std::vector<NamedNumbers>& lines, bool steps) {
  std::vector<NamedNumbers> out;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(out),
               [&](const NamedNumbers& line) { return is_step(line) == steps; });
  return out;
}

int64_t last_step(const std::vector<NamedNumbers>& lines) {
  int64_t last = 0;
  for (const NamedNumbers& line : lines) {
    for (const auto& [name, value] : line) {
      if (name == "step" && value > double(last) && value < 0x1p53) last = int64_t(value);
    }
  }
  return last;
}

// Adds scalars under the tags that Hugging Face's Trainer uses: train/loss, eval/accuracy.
void append_event(EventFile& events, const NamedNumbers& numbers) {
  constexpr std::string_view evaluation = "eval_";
  NamedNumbers scalars;
  int64_t step = 0;
  for (const auto& [name, value] : numbers) {
    if (name == "step")
      step = int64_t(value);
    else if (name.starts_with(evaluation))
      scalars.emplace_back(concat("eval/", name.substr(evaluation.size())), value);
    else if (name != "epoch" || is_step(numbers))
      scalars.emplace_back(concat("train/", name), value);
  }
  events.append(step, scalars);
}

}  // namespace

MetricsTable::MetricsTable(fs::path path, const std::vector<NamedNumbers>& rows)
    : path_(std::move(path)) {
  if (rows.empty()) {  // the first row creates the file
    std::error_code error;
    fs::remove(path_, error);
    if (!error) return;
    throw system_failure(path_, error.value(), ExitCode::model, "cannot be removed: ");
  }
  std::string text;
  for (const NamedNumbers& row : rows) text += lines_of(row);
  write_file(path_, text);
}

MetricsTable::~MetricsTable() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string MetricsTable::lines_of(const NamedNumbers& row) {
  std::string text;
  if (columns_.empty()) {
    for (const auto& [name, value] : row) columns_.push_back(name);
    append_csv_row(columns_, text);
  }
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const auto found = std::find_if(row.begin(), row.end(),
                                    [&](const auto& number) { return number.first == column; });
    const bool is_number = found != row.end() && std::isfinite(found->second);
    cells.push_back(is_number ? number_text(found->second) : "");
  }
  append_csv_row(cells, text);
  return text;
}

void MetricsTable::append(const NamedNumbers& row) {
  if (descriptor_ < 0) descriptor_ = open_for_appending(path_, columns_.empty());
  if (write_all(descriptor_, lines_of(row))) return;
  throw write_failure(path_, errno);
}

RunLog::RunLog(const RunDirectory& directory, int64_t resume_step, int64_t evaluated_step,
               int64_t log_every, bool tensorboard)
    : lines_(directory.metrics_log(), resume_step, evaluated_step) {
  const std::vector<NamedNumbers> kept = read_metrics_log(directory.metrics_log());
  const std::vector<NamedNumbers> steps = those_of(kept, true);
  if (const int64_t last = last_step(steps); resume_step - last >= log_every) {
    warn(directory.metrics_log().string(), ": has no lines of the steps from ", last + 1, " to ",
         resume_step, ": the curves have a gap there");
  }
  steps_.emplace(directory.metrics_table(), steps);
  evaluations_.emplace(directory.evaluations_table(), those_of(kept, false));
  if (tensorboard) events_.emplace(directory.path(), std::max<int64_t>(resume_step, 0) + 1);
}

void RunLog::append_step(const NamedNumbers& numbers) {
  lines_.append(numbers);
  steps_->append(numbers);
  if (events_) append_event(*events_, numbers);
}

void RunLog::append_step(const StepNumbers& n) {
  append_step(NamedNumbers{{"step", double(n.step)},
                           {"epoch", n.epoch},
                           {"loss", n.loss},
                           {"lr", n.learning_rate},
                           {"grad_norm", n.gradient_norm},
                           {"tokens_per_second", double(n.tokens) / n.seconds},
                           {"samples_per_second", double(n.samples) / n.seconds}});
}

void RunLog::append_evaluation(const NamedNumbers& numbers) {
  lines_.append(numbers);
  evaluations_->append(numbers);
  if (events_) append_event(*events_, numbers);
}

void RunLog::sync() {
  lines_.sync();
}

}  // namespace finetune
