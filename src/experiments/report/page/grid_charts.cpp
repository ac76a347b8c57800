// Draws calibration, confusion and density.
#include <algorithm>
#include <cmath>

#include "core/text/counted.h"
#include "core/text/text.h"
#include "experiments/report/page/charts.h"

namespace finetune {
namespace {

constexpr double kSide = 360, kPlotLeft = 46, kPlotTop = 24, kPlotRight = 14, kPlotBottom = 40;
constexpr size_t kFewLabels = 14;       // their cells are large
constexpr double kDarkest = 0.65;       // text on it stays readable
constexpr double kMostNameWidth = 220;  // of a label beside a matrix
constexpr double kTarget = 0.95;        // the accuracy that automatic answers need
constexpr int64_t kFewRows = 10;        // bins with fewer rows are pale
constexpr int64_t kLeastRows = 20;      // with fewer, 95 % cannot be told from 100 %

PlotArea square_area(double height, Interval x, Interval y) {
  return {std::max(kPlotLeft, numbers_width(y)),
          kPlotTop,
          kSide - kPlotRight,
          height - kPlotBottom,
          x,
          y};
}

// Even a small share is visible.
double shade(double share) {
  return share <= 0 ? 0 : kDarkest * (0.12 + 0.88 * std::sqrt(share));
}

// The `rows` surest rows, and the number that is right. `probability` is the lowest of the rows'.
struct SurestPart {
  double probability;
  int64_t rows, right;

  double accuracy() const { return double(right) / double(rows); }
};

// Returns a part for each distinct probability.
std::vector<SurestPart> surest_parts(std::vector<std::pair<double, bool>> all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SurestPart> parts;
  int64_t right = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    right += all[i].second;
    const bool is_tied = i + 1 < all.size() && all[i + 1].first == all[i].first;
    if (!is_tied) parts.push_back({all[i].first, int64_t(i) + 1, right});
  }
  return parts;
}

// A number with few digits that is above `below` and at most `most`: at least three of them.
std::string least_text(double below, double most) {
  std::string text;
  for (int digits = 3; digits <= 7; ++digits) {
    const double unit = std::pow(10, digits), least = std::floor(most * unit) / unit;
    text = format_fixed(least, digits);
    if (least > below) break;
  }
  return text;
}

std::string percent(double share) {
  return format_fixed(100 * share, 1) + " %";
}

}  // namespace

void Calibration::add(double probability, bool right) {
  const double clamped = std::clamp(probability, 0.0, 1.0);
  Bin& bin = bins_[size_t(
      std::min<double>(double(bins_.size()) - 1, std::floor(clamped * double(bins_.size()))))];
  ++bin.count;
  bin.right += right;
  bin.probability += clamped;
  all_.emplace_back(clamped, right);
  ++count_;
}

double Calibration::expected_error() const {
  double sum = 0;
  for (const Bin& bin : bins_) sum += std::abs(double(bin.right) - bin.probability);
  return count_ == 0 ? 0 : sum / double(count_);
}

std::string Calibration::calibration_html(const std::string& of, const std::string& note) const {
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
                            report_number(high), ": ", percent(share), " right"),
                     bin.count < kFewRows ? 0.12 : 0.4);
    canvas.text(area.x((low + high) / 2), area.bottom - 4, Anchor::middle,
                report_number(double(bin.count)), "count");
  }
  canvas.line(area.left, area.bottom, area.right, area.top, "diagonal");
  if (points.size() > 1) canvas.polyline(points, "line c0 d0", "");
  for (const auto& [x, y] : points) canvas.circle(x, y, 3, "dot c0", "");
  Picture picture{
      "Calibration",
      concat("On the dashed line probabilities are what they say; below it they are too "
             "high. Expected calibration error: ",
             shown_number(expected_error()), ". ", note, note.empty() ? "" : " ",
             "The numbers in the bars count rows; pale bars have fewer than ", kFewRows, "."),
      concat("Share of right ", of, " by their probability, in ", bins_.size(), " bins"),
      kSide,
      height,
      canvas.svg()};
  return figure_html(picture, table);
}

std::string Calibration::coverage_html(const std::string& of, const std::string& part_note) const {
  constexpr double height = 300;
  constexpr size_t kMostPoints = 150;
  const std::vector<SurestPart> parts = surest_parts(all_);
  if (parts.empty()) return "";
  const double all = double(parts.back().rows);
  double lowest = kTarget;
  const SurestPart* automatic = nullptr;
  for (const SurestPart& part : parts) {
    if (double(part.rows) >= 0.02 * all) lowest = std::min(lowest, part.accuracy());
    if (part.accuracy() >= kTarget) automatic = &part;
  }
  const PlotArea area = square_area(height, {0, 1}, rounded_outwards({lowest, 1}, 6));
  Canvas canvas;
  draw_axes(area, concat("share of the ", of, ", the surest first"), "share right", canvas);
  canvas.line(area.left, area.y(kTarget), area.right, area.y(kTarget), "diagonal");
  HtmlTable table("Accuracy of the surest part",
                  {"probability at least", concat("share of the ", of), "share right", "rows"});
  std::vector<std::pair<double, double>> points;
  const size_t each = (parts.size() + kMostPoints - 1) / kMostPoints;
  for (size_t i = (parts.size() - 1) % each; i < parts.size(); i += each) {
    const double share = double(parts[i].rows) / all;
    points.emplace_back(area.x(share), area.y(parts[i].accuracy()));
    table.number(parts[i].probability).number(share).number(parts[i].accuracy());
    table.number(double(parts[i].rows)).end_row();
  }
  canvas.polyline(points, "line c0 d0", "");
  std::string note = concat("No part of the ", of, " is right ", percent(kTarget), " of the time.");
  if (parts.back().rows < kLeastRows) {
    note =
        concat("Too few ", of, " to say which part is right ", percent(kTarget), " of the time.");
  } else if (automatic) {
    const double share = double(automatic->rows) / all;
    const double below = automatic == &parts.back() ? 0 : (automatic + 1)->probability;
    note = concat(
        "The dot: the surest ", percent(share), " of the ", of,
        part_note.empty()
            ? concat(" (probability at least ", least_text(below, automatic->probability), ")")
            : "",
        " are right ", percent(automatic->accuracy()), " of the time, the largest part with ",
        percent(kTarget), ".", part_note.empty() ? "" : " ", part_note);
    canvas.circle(area.x(share), area.y(automatic->accuracy()), 4, "dot c1", note);
  }
  Picture picture{"Accuracy of the surest part", note, "", kSide, height, canvas.svg()};
  picture.description =
      concat("All ", of, ": ", percent(parts.back().accuracy()), " right. ", note);
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
  const double cell = n <= 6 ? 46 : n <= kFewLabels ? 38 : 27;
  const std::string predicted = "predicted →";
  double longest = 40;
  for (const std::string& name : names)
    longest = std::max(longest, text_width(fitting_text(name, kMostNameWidth)));
  // Fonts differ, so the axis' name gets more than its width.
  const double left = std::max(longest + 26, 1.3 * text_width(predicted)), top = longest + 30;
  Canvas canvas;
  canvas.text(left - 6, 12, Anchor::end, predicted, "name");
  canvas.text(2, top - 8, Anchor::start, "true ↓", "name");
  for (size_t i = 0; i < n; ++i) {
    const double middle = (double(i) + 0.5) * cell + 4;
    canvas.name(left - 6, top + middle, names[i], kMostNameWidth);
    canvas.upward_name(left + middle, top - 6, names[i], kMostNameWidth);
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
      canvas.text(x + cell / 2, y + cell / 2 + 4, Anchor::middle, report_number(double(count)),
                  n <= kFewLabels ? "" : "count");
    }
    canvas.text(left + double(n) * cell + 34, top + (double(t) + 0.5) * cell + 4, Anchor::end,
                report_number(double(sum)), "name");
  }
  canvas.text(left + double(n) * cell + 34, top - 6, Anchor::end, "rows", "name");
  const double right = left + double(n) * cell, bottom = top + double(n) * cell;
  for (size_t i = 0; i <= n; ++i) {
    canvas.line(left, top + double(i) * cell - 0.5, right, top + double(i) * cell - 0.5, "grid");
    canvas.line(left + double(i) * cell - 0.5, top, left + double(i) * cell - 0.5, bottom, "grid");
  }
  Picture picture{title, "", "", right + 40, bottom + 8, canvas.svg(), true};
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
          concat(counted(cells, "cell"), " of ", x_name, " and ", y_name,
                 cells == 1 ? " holds" : " hold", " rows"),
          kSide,
          height,
          canvas.svg()};
}

}  // namespace finetune
