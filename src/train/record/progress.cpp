// Formats progress and evaluations for people.
#include "train/record/progress.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/text/printable.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "tasks/scores/metric_table.h"
#include "train/checkpoint/checkpoint.h"

namespace finetune {
namespace {

constexpr int kShownDigits = 4;

// Names in CheckpointState::totals: the sum of the losses of all steps, and of the steps up to the
// last evaluation. There may be at most eight totals: HDF5 stores up to eight attributes in one
// place, where the tests read them.
constexpr const char *kLoss = "loss", *kRowLosses = "row_losses";

constexpr size_t kNarrow = 7, kWide = 12;
constexpr size_t kMostShown = 3;

std::string title_of(const std::string& metric) {
  const MetricInfo* info = find_metric(metric);
  if (info && !info->column.empty()) return std::string(info->column);
  return metric.substr(metric.starts_with("eval_") ? 5 : 0);
}

std::vector<std::string> shown_metrics(const Metrics& metrics, const std::string& measure) {
  std::vector<std::string> names;
  const bool is_of_numbers = metrics.contains("eval_mse");  // MSE is their loss
  if (metrics.contains("eval_loss") && !is_of_numbers) names.emplace_back("eval_loss");
  for (const MetricInfo& metric : kMetricTable) {
    if (metric.column.empty() || names.size() == kMostShown) continue;
    const std::string name(metric.name);
    if (name != "eval_loss" && metrics.contains(name)) names.push_back(name);
  }
  const bool is_shown = std::find(names.begin(), names.end(), measure) != names.end();
  if (is_shown || !metrics.contains(measure)) return names;
  if (names.size() == kMostShown) names.pop_back();
  names.push_back(measure);
  return names;
}

// Four digits after the point; for small and large numbers four significant digits.
std::string shown(double value) {
  return std::abs(value) >= 100 ? significant(value, 4) : format_measure(value);
}

constexpr std::string_view kBest = "best";
constexpr size_t kHours = 2;  // further columns of a time such as 1:05:09

// A cell of a row and its column's title, both right-aligned in `width`, at least two blanks after
// the previous ones. On a narrow terminal columns with the highest rank are left out first.
struct Cell {
  std::string title, value;
  size_t width;
  int rank;
};

// The line of titles or of values.
std::string joined(const std::vector<Cell>& cells, std::string Cell::*text) {
  std::string line;
  for (const Cell& cell : cells) {
    if (!(cell.*text).empty()) line += padded("  " + cell.*text, cell.width, true);
  }
  return line;
}

// The line in all columns, and in those that a terminal of `columns` has room for.
EvaluationLine line_of(std::vector<Cell> cells, std::string Cell::*text, size_t columns) {
  const std::string whole = joined(cells, text);
  const auto width = [&] {
    return std::accumulate(cells.begin(), cells.end(), kHours,
                           [](size_t sum, const Cell& cell) { return sum + cell.width; });
  };
  while (columns > 0 && width() > columns) {
    const auto least = std::max_element(
        cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.rank < b.rank; });
    if (least->rank == 0) break;
    cells.erase(least);
  }
  return {whole, joined(cells, text)};
}

void add_share(std::vector<ProgressPart>& parts, double share, double seconds) {
  if (share <= 0) return;
  parts.push_back({concat(format_fixed(100 * share, 0), " %"), 0});
  parts.push_back({concat("remaining ", clock_time(seconds / share * (1 - share))), 1});
}

}  // namespace

std::string clock_time(double seconds) {
  int64_t s = int64_t(std::max(0.0, seconds) + 0.5);
  auto two = [](int64_t n) { return concat(n < 10 ? "0" : "", n); };
  if (s >= 3600) return concat(s / 3600, ":", two(s % 3600 / 60), ":", two(s % 60));
  return concat(s / 60, ":", two(s % 60));
}

std::vector<ProgressPart> progress_parts(std::string_view verb, int64_t done, std::string_view what,
                                         double share, double seconds) {
  std::vector<ProgressPart> parts = {
      {concat(verb, " ", with_thousands(double(done)), " ", what), 0}};
  if (done > 0 && seconds > 0) {
    parts.push_back({concat(format_fixed(double(done) / seconds, 1), " ", what, "/s"), 2});
  }
  add_share(parts, share, seconds);
  return parts;
}

std::vector<ProgressPart> progress_parts(std::string_view verb, double share, double seconds) {
  std::vector<ProgressPart> parts = {{std::string(verb), 0}};
  add_share(parts, share, seconds);
  return parts;
}

std::vector<ProgressPart> progress_parts(const RunProgress& p) {
  return {{concat("step ", p.step, "/", p.steps), 0},
          {concat("epoch ", format_fixed(p.epoch, 2)), 3},
          {concat("loss ", format_fixed(p.loss, kShownDigits)), 2},
          {concat(format_fixed(p.samples_per_second, 1), " samples/s"), 4},
          {concat(format_fixed(p.tokens_per_second, 0), " tokens/s"), 5},
          {concat("remaining ", clock_time(p.seconds_left)), 1}};
}

EvaluationRows::EvaluationRows(std::string measure, int64_t step, double losses)
    : measure_(std::move(measure)), step_(step), losses_(losses) {}

std::vector<EvaluationLine> EvaluationRows::add(const EvaluationAt& at, const Metrics& metrics,
                                                size_t columns) {
  const int64_t steps = at.step - step_;  // 0: this step is evaluated again
  const std::string loss = steps > 0 ? shown((at.losses - losses_) / double(steps)) : "-";
  std::vector<Cell> cells = {{"epoch", format_fixed(at.epoch, 2), kNarrow, 0},
                             {"step", concat(at.step), kNarrow, 5},
                             {"train loss", loss, kWide, 4}};
  int rank = 6;
  for (const std::string& name : shown_metrics(metrics, measure_)) {
    const bool is_first = cells.back().title == "train loss";
    const int of_metric = name == measure_ ? 0 : is_first ? 1 : rank++;
    const std::string title = title_of(name);
    const size_t width = std::max(kWide, title.size() + 2);
    cells.push_back({title, shown(metrics.at(name)), width, of_metric});
  }
  cells.push_back({"time", clock_time(at.seconds), kNarrow, 2});
  cells.push_back({"", at.is_best ? std::string(kBest) : "", kBest.size() + 2, 3});
  step_ = at.step;
  losses_ = at.losses;
  std::vector<EvaluationLine> lines = {line_of(cells, &Cell::value, columns)};
  if (!std::exchange(has_header_, true)) {
    lines.insert(lines.begin(), line_of(cells, &Cell::title, columns));
  }
  return lines;
}

EvaluationRows rows_after(const CheckpointState& state, const std::string& measure) {
  const int64_t evaluated = evaluated_step(state);
  if (evaluated < 0) return {measure, 0, 0};
  const auto losses = state.totals.find(kRowLosses);
  if (losses != state.totals.end() && evaluated <= state.step) {
    return {measure, evaluated, losses->second};
  }
  // Older checkpoints do not have this total: the row then counts from where the run resumes.
  const auto all = state.totals.find(kLoss);
  return {measure, state.step, all == state.totals.end() ? 0 : all->second};
}

void keep_evaluation(CheckpointState& state) {
  state.totals["evaluated"] = double(state.step);
  state.totals[kRowLosses] = state.totals[kLoss];
}

}  // namespace finetune
