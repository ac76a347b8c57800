// Draws calibration, confusion and density.
#include <algorithm>
#include <cmath>

#include "core/text/counted.h"
#include "core/text/text.h"
#include "experiments/report/charts.h"

namespace finetune {
namespace {

constexpr double kSide = 360, kPlotLeft = 46, kPlotTop = 24, kPlotRight = 14, kPlotBottom = 40;
constexpr size_t kMostNumberedLabels = 14;  // cells have numbers in them
constexpr double kDarkest = 0.65;           // text on it stays readable

PlotArea square_area(double height, Interval x, Interval y) {
  return {std::max(kPlotLeft, numbers_width(y)),
          kPlotTop,
          kSide - kPlotRight,
          height - kPlotBottom,
          x,
          y};
}

// Few are seen too.
double shade(double share) {
  return share <= 0 ? 0 : kDarkest * (0.12 + 0.88 * std::sqrt(share));
}

}  // namespace

void Calibration::add(double probability, bool right) {
  const double clamped = std::clamp(probability, 0.0, 1.0);
  Bin& bin = bins_[size_t(
      std::min<double>(double(bins_.size()) - 1, std::floor(clamped * double(bins_.size()))))];
  ++bin.count;
  bin.right += right;
  bin.probability += clamped;
  ++count_;
}

double Calibration::expected_error() const {
  double sum = 0;
  for (const Bin& bin : bins_) sum += std::abs(double(bin.right) - bin.probability);
  return count_ == 0 ? 0 : sum / double(count_);
}

std::string Calibration::calibration_html(const std::string& of) const {
  constexpr double height = 300;
  const PlotArea area = square_area(height, {0, 1}, {0, 1});
  Canvas canvas;
  draw_axes(area, "probability", "share that is right", canvas);
  HtmlTable table("Calibration",
                  {"probability from", "to", of, "right", "mean probability", "share right"});
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < bins_.size(); ++i) {
    const Bin& bin = bins_[i];
    const double low = double(i) / double(bins_.size()),
                 high = double(i + 1) / double(bins_.size());
    table.number(low).number(high).number(double(bin.count)).number(double(bin.right));
    if (bin.count == 0) {
      table.text("").text("").end_row();
      continue;
    }
    const double mean = bin.probability / double(bin.count);
    const double share = double(bin.right) / double(bin.count);
    table.number(mean).number(share).end_row();
    points.emplace_back(area.x(mean), area.y(share));
    canvas.rectangle(area.x(low) + 1, area.y(share), area.x(high) - area.x(low) - 2,
                     area.bottom - area.y(share), "right",
                     concat(bin.count, " ", of, " of probability ", report_number(low), " to ",
                            report_number(high), ": ", format_fixed(100 * share, 1), " % right"),
                     0.4);
  }
  canvas.line(area.left, area.bottom, area.right, area.top, "diagonal");
  if (points.size() > 1) canvas.polyline(points, "line c0 d0", "");
  for (const auto& [x, y] : points) canvas.circle(x, y, 3, "dot c0", "");
  Picture picture{
      "Calibration",
      concat("On the dashed line probabilities are what they say; below it they are too "
             "high. Expected calibration error: ",
             report_number(expected_error()), "."),
      concat("Share of right ", of, " by their probability, in ", bins_.size(), " bins"),
      kSide,
      height,
      canvas.svg()};
  return figure_html(picture, table);
}

std::string Calibration::confidence_html(const std::string& of) const {
  Histogram histogram = make_histogram({0, 1.0 / double(bins_.size()), int64_t(bins_.size())},
                                       false, {{"right", "right"}, {"wrong", "wrong"}});
  for (size_t i = 0; i < bins_.size(); ++i) {
    histogram.counts[0][i] = bins_[i].right;
    histogram.counts[1][i] = bins_[i].count - bins_[i].right;
  }
  return histogram_html(concat("How sure ", of, " are"), "probability", "", histogram);
}

Picture confusion_picture(const std::string& title, const std::vector<std::string>& names,
                          const std::vector<std::vector<int64_t>>& counts) {
  const size_t n = names.size();
  const double cell = n <= 6 ? 46 : n <= kMostNumberedLabels ? 38 : 22;
  double longest = 40;
  for (const std::string& name : names)
    longest = std::max(longest, text_width(fitting_text(name, 150)));
  const double left = longest + 26, top = longest + 30;
  Canvas canvas;
  canvas.text(left - 6, 12, Anchor::end, "predicted →", "name");
  canvas.text(2, top - 8, Anchor::start, "true ↓", "name");
  for (size_t i = 0; i < n; ++i) {
    const std::string name = fitting_text(names[i], 150);
    canvas.text(left - 6, top + (double(i) + 0.5) * cell + 4, Anchor::end, name);
    canvas.upward_text(left + (double(i) + 0.5) * cell + 4, top - 6, name);
  }
  int64_t off = 0, on = 0;
  for (size_t t = 0; t < n; ++t) {
    int64_t sum = 0;
    for (int64_t count : counts[t]) sum += count;
    for (size_t p = 0; p < n; ++p) {
      const double x = left + double(p) * cell, y = top + double(t) * cell;
      const int64_t count = counts[t][p];
      (t == p ? on : off) += count;
      if (count == 0) continue;
      const double share = double(count) / double(std::max<int64_t>(1, sum));
      canvas.rectangle(x, y, cell - 1, cell - 1, t == p ? "right" : "wrong",
                       concat(names[t], " → ", names[p], ": ", count, ", ",
                              format_fixed(100 * share, 1), " % of the row"),
                       shade(share));
      if (n <= kMostNumberedLabels) {
        canvas.text(x + cell / 2, y + cell / 2 + 4, Anchor::middle, report_number(double(count)));
      }
    }
  }
  const double right = left + double(n) * cell, bottom = top + double(n) * cell;
  for (size_t i = 0; i <= n; ++i) {
    canvas.line(left, top + double(i) * cell - 0.5, right, top + double(i) * cell - 0.5, "grid");
    canvas.line(left + double(i) * cell - 0.5, top, left + double(i) * cell - 0.5, bottom, "grid");
  }
  Picture picture{title, "", "", right + 8, bottom + 8, canvas.svg(), true};
  picture.description = concat(n, " labels, ", on, " right on the diagonal and ", off, " off it");
  return picture;
}

Picture density_picture(const std::string& title, const std::string& x_name,
                        const std::string& y_name, const DensityGrid& grid) {
  constexpr double height = 300;
  const PlotArea area = square_area(height, {grid.x.edge(0), grid.x.edge(grid.x.count)},
                                    {grid.y.edge(0), grid.y.edge(grid.y.count)});
  Canvas canvas;
  draw_axes(area, x_name, y_name, canvas);
  int64_t most = 1, cells = 0;
  for (const auto& row : grid.counts)
    most = std::max(most, *std::max_element(row.begin(), row.end()));
  for (int64_t y = 0; y < grid.y.count; ++y) {
    for (int64_t x = 0; x < grid.x.count; ++x) {
      const int64_t count = grid.counts[size_t(y)][size_t(x)];
      if (count == 0) continue;
      ++cells;
      const double left = area.x(grid.x.edge(x)), top = area.y(grid.y.edge(y + 1));
      canvas.rectangle(
          left, top, area.x(grid.x.edge(x + 1)) - left, area.y(grid.y.edge(y)) - top, "right",
          concat(counted(count, "row"), ": ", x_name, " from ", report_number(grid.x.edge(x)), ", ",
                 y_name, " from ", report_number(grid.y.edge(y))),
          0.15 + 0.85 * std::sqrt(double(count) / double(most)));
    }
  }
  const double low = std::max(area.x.domain.low, area.y.domain.low);
  const double high = std::min(area.x.domain.high, area.y.domain.high);
  if (low < high) canvas.line(area.x(low), area.y(low), area.x(high), area.y(high), "diagonal");
  return {title,
          concat("On the dashed line the two are equal. The darkest cell holds ",
                 counted(most, "row"), "."),
          concat(cells, " cells of ", x_name, " and ", y_name, " hold rows"),
          kSide,
          height,
          canvas.svg()};
}

}  // namespace finetune
