// Shows a regression's predictions beside the true values, the errors and the worst rows.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text/text.h"
#include "experiments/report/row_texts.h"
#include "experiments/report/sections.h"

namespace finetune {
namespace {

constexpr int kMostGridCells = 30;
constexpr int kMostValueBins = 30;

std::string plane_html(const SavedValues& saved) {
  DensityGrid grid;
  std::vector<double> all = saved.truth;  // one range for both axes: equal values are diagonal
  all.insert(all.end(), saved.predicted.begin(), saved.predicted.end());
  grid.x = grid.y = round_bins(interval_of(all), kMostGridCells, false);
  grid.counts.assign(size_t(grid.y.count), std::vector<int64_t>(size_t(grid.x.count)));
  for (size_t i = 0; i < saved.truth.size(); ++i) {
    ++grid.counts[size_t(grid.y.of(saved.predicted[i]))][size_t(grid.x.of(saved.truth[i]))];
  }
  const std::string title = "Predicted and true values";
  HtmlTable table(title, {"true from", "predicted from", "rows"});
  for (int64_t x = 0; x < grid.x.count; ++x) {
    for (int64_t y = 0; y < grid.y.count; ++y) {
      const int64_t count = grid.counts[size_t(y)][size_t(x)];
      if (count == 0) continue;
      table.number(grid.x.edge(x)).number(grid.y.edge(y)).number(double(count)).end_row();
    }
  }
  return figure_html(density_picture(title, "true", "predicted", grid), table);
}

std::string spread_html(const std::string& title, const std::string& x_name,
                        const std::string& kind, const std::vector<double>& values) {
  Histogram histogram = make_histogram(round_bins(interval_of(values), kMostValueBins, false),
                                       false, {{kind, "right"}});
  for (double value : values) histogram.add(0, value);
  return histogram_html(title, x_name, "", histogram);
}

std::string worst_values_html(const SavedValues& saved, const std::vector<double>& errors,
                              const RowTexts& texts) {
  std::vector<size_t> order(errors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(errors[a]) > std::abs(errors[b]); });
  order.resize(std::min(order.size(), size_t(kMostErrors)));
  std::vector<std::string> header{"row", "true", "predicted", "error"};
  if (texts.known()) header.insert(header.begin() + 1, "text");
  HtmlTable table("The largest errors", header, true);
  for (size_t i : order) {
    table.number(double(i + 1));
    if (texts.known()) table.text(texts.text(i), kMostTextBytes);
    table.number(saved.truth[i]).number(saved.predicted[i]).number(errors[i]).end_row();
  }
  table.note("A row's number counts from 1, as in predictions.csv.");
  return concat(
      "<h3>The largest errors</h3>\n", table.region(true),
      texts.known() ? "" : "<p class=\"note\">The columns of the texts are not known.</p>\n");
}

}  // namespace

std::string values_html(const RunRecord& run) {
  const SavedValues saved = read_saved_values(run);
  std::vector<double> errors;
  double squares = 0;
  for (size_t i = 0; i < saved.truth.size(); ++i) {
    errors.push_back(saved.predicted[i] - saved.truth[i]);
    squares += errors.back() * errors.back();
  }
  const std::string mismatch =
      metric_mismatch(run, "eval_mse", squares / double(std::max<size_t>(1, errors.size())));
  if (!mismatch.empty()) throw data_error(mismatch);
  const RowTexts texts(run, saved);
  std::string out =
      concat("<div class=\"figures\">\n", plane_html(saved),
             spread_html("Errors", "predicted - true", "rows", errors),
             spread_html("True values", "value", "rows", saved.truth), texts.lengths_html({}),
             "</div>\n", worst_values_html(saved, errors, texts));
  saved.table.check_intact();
  return out;
}

}  // namespace finetune
