// Draws lines and histograms.
#include "experiments/report/page/charts.h"

#include <algorithm>
#include <cmath>

#include "core/text/text.h"

namespace finetune {
namespace {

constexpr double kWidth = 360, kHeight = 230;
constexpr double kLeft = 46, kTop = 24, kRight = 14, kBottom = 40;
constexpr size_t kMostMarkers = 40;  // of a line's points
constexpr size_t kColours = 8, kDashes = 4;

// Draws coloured squares and names in the line above a picture.
void draw_legend(const std::vector<std::string>& names, const std::vector<std::string>& classes,
                 double x, Canvas& canvas) {
  for (size_t i = 0; i < names.size(); ++i) {
    canvas.rectangle(x, 5, 9, 9, classes[i], "");
    canvas.text(x + 13, 13, Anchor::start, names[i]);
    x += 25 + text_width(names[i]);
  }
}

}  // namespace

PlotArea plot_area(Interval x, Interval y) {
  return {std::max(kLeft, numbers_width(y)), kTop, kWidth - kRight, kHeight - kBottom, x, y};
}

Picture framed_picture(const std::string& title, const Canvas& canvas) {
  return {title, "", "", kWidth, kHeight, canvas.svg()};
}

std::string line_style(size_t style) {
  return concat("line c", style % kColours, " d", style / kColours % kDashes);
}

std::string dot_style(size_t style) {
  return concat("dot c", style % kColours);
}

Picture line_picture(const std::string& title, const std::string& x_name,
                     const std::vector<LineSeries>& series) {
  std::vector<double> xs, ys;
  std::vector<LineSeries> shown = series;
  for (LineSeries& one : shown) {
    std::erase_if(one.points, [](const auto& point) {
      return !std::isfinite(point.first) || !std::isfinite(point.second);
    });
    for (const auto& [x, y] : one.points) {
      xs.push_back(x);
      ys.push_back(y);
    }
  }
  const PlotArea area = plot_area(interval_of(xs), rounded_outwards(interval_of(ys), 6));
  Canvas canvas;
  draw_axes(area, x_name, " ", canvas);
  Picture picture{title, "", "", kWidth, kHeight, ""};
  for (const LineSeries& one : shown) {
    if (one.points.empty()) continue;
    std::vector<std::pair<double, double>> places;
    for (const auto& [x, y] : one.points) places.emplace_back(area.x(x), area.y(y));
    if (places.size() > 1) canvas.polyline(places, line_style(one.style), one.name);
    if (places.size() <= kMostMarkers) {
      for (size_t i = 0; i < places.size(); ++i) {
        canvas.circle(places[i].first, places[i].second, 2.2, dot_style(one.style),
                      concat(one.name, ", ", x_name, " ", report_number(one.points[i].first), ": ",
                             report_number(one.points[i].second)));
      }
    }
    picture.description += concat(picture.description.empty() ? "" : "; ", one.name, " from ",
                                  report_number(one.points.front().second), " at ", x_name, " ",
                                  report_number(one.points.front().first), " to ",
                                  report_number(one.points.back().second), " at ", x_name, " ",
                                  report_number(one.points.back().first));
  }
  picture.svg = canvas.svg();
  return picture;
}

Histogram make_histogram(EqualBins bins, bool whole,
                         const std::vector<std::pair<std::string, std::string>>& kinds) {
  Histogram out;
  out.bins = bins;
  out.whole = whole;
  for (const auto& [name, style] : kinds) {
    out.names.push_back(name);
    out.classes.push_back(style);
    out.counts.emplace_back(size_t(bins.count));
  }
  return out;
}

std::string histogram_html(const std::string& title, const std::string& x_name,
                           const std::string& note, const Histogram& h) {
  std::vector<int64_t> sums(size_t(h.bins.count));
  for (const auto& counts : h.counts) {
    for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
  }
  const int64_t most = *std::max_element(sums.begin(), sums.end());
  const Interval x{h.bins.edge(0), h.bins.edge(h.bins.count)};
  const PlotArea area = plot_area(x, rounded_outwards({0, double(std::max<int64_t>(1, most))}, 6));
  Canvas canvas;
  draw_axes(area, x_name, " ", canvas);
  if (h.names.size() > 1) draw_legend(h.names, h.classes, kLeft, canvas);
  std::vector<std::string> header{"from", h.whole ? "to" : "to below"};
  header.insert(header.end(), h.names.begin(), h.names.end());
  HtmlTable table(title, header);
  for (int64_t i = 0; i < h.bins.count; ++i) {
    const double low = h.bins.edge(i), high = h.bins.edge(i + 1) - (h.whole ? 1 : 0);
    const bool is_open = h.open && i + 1 == h.bins.count;
    const std::string span = is_open ? concat(report_number(low), " and more")
                             : low == high
                                 ? report_number(low)
                                 : concat(report_number(low), " to ", report_number(high));
    table.number(low);
    if (is_open)
      table.text("and more");
    else
      table.number(high);
    double bottom = area.bottom;
    for (size_t k = 0; k < h.counts.size(); ++k) {
      const int64_t count = h.counts[k][size_t(i)];
      table.number(double(count));
      if (count == 0) continue;
      const double height = area.bottom - area.y(double(count));
      const double left = area.x(h.bins.edge(i)), right = area.x(h.bins.edge(i + 1));
      canvas.rectangle(left + 0.5, bottom - height, std::max(0.5, right - left - 1), height,
                       h.classes[k], concat(span, ": ", count, " ", h.names[k]));
      bottom -= height;
    }
    table.end_row();
  }
  Picture picture{title, note, "", kWidth, kHeight, canvas.svg()};
  const auto fullest = std::max_element(sums.begin(), sums.end()) - sums.begin();
  picture.description = concat(h.bins.count, " bins of ", x_name, " from ", report_number(x.low),
                               " to ", report_number(x.high), "; the fullest begins at ",
                               report_number(h.bins.edge(fullest)), " and holds ", most);
  return figure_html(picture, table);
}

}  // namespace finetune
