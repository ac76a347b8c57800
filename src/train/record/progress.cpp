// Formats progress and evaluations for people.
#include "train/record/progress.h"

#include <algorithm>
#include <cmath>

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

// Right-aligns a column, at least two blanks after the previous one.
std::string right(const std::string& text, size_t width) {
  return padded("  " + text, width, true);
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

std::vector<std::string> EvaluationRows::add(const EvaluationAt& at, const Metrics& metrics) {
  const int64_t steps = at.step - step_;  // 0: this step is evaluated again
  const std::string loss = steps > 0 ? shown((at.losses - losses_) / double(steps)) : "-";
  std::string header =
      right("epoch", kNarrow) + right("step", kNarrow) + right("train loss", kWide);
  std::string row = right(format_fixed(at.epoch, 2), kNarrow) + right(concat(at.step), kNarrow) +
                    right(loss, kWide);
  for (const std::string& name : shown_metrics(metrics, measure_)) {
    const std::string title = title_of(name);
    header += right(title, kWide);
    row += right(shown(metrics.at(name)), std::max(kWide, title.size() + 2));
  }
  header += right("time", kNarrow);
  row += right(clock_time(at.seconds), kNarrow) + (at.is_best ? "  best" : "");
  step_ = at.step;
  losses_ = at.losses;
  std::vector<std::string> lines;
  if (!has_header_) lines.push_back(std::move(header));
  has_header_ = true;
  lines.push_back(std::move(row));
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
