// Draws an SVG picture: numbers on an axis, and shapes. Colours are classes of the page's style.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finetune {

// Writes a number for people: a whole number as it is, others with six significant digits.
std::string report_number(double value);

struct Interval {
  double low = 0, high = 1;  // low < high
};
// The interval of the finite values, wider if they are all equal; 0 to 1 if there are none.
Interval interval_of(std::span<const double> values);

// A linear map of an interval to coordinates.
struct AxisScale {
  Interval domain;
  double from = 0, to = 1;

  double operator()(double value) const {  // clamped
    const double within = std::clamp(value, domain.low, domain.high);
    return from + (within - domain.low) / (domain.high - domain.low) * (to - from);
  }
};

// Multiples of 1, 2 or 5 times a power of ten within the interval, at most `most` (>= 2) of them.
std::vector<double> round_ticks(Interval interval, int most);
// The interval, widened to multiples of the distance between its ticks.
Interval rounded_outwards(Interval interval, int most);

// Bins of one width whose edges are round numbers: bin i holds [low + i width, low + (i + 1)
// width), the last one its upper edge too.
struct EqualBins {
  double low = 0, width = 1;
  int64_t count = 1;

  int64_t of(double value) const;  // clamped
  double edge(int64_t i) const { return low + double(i) * width; }
};
// Makes at most `most` (>= 2) bins over the interval. `whole`: for whole numbers, with a width of
// at least 1.
EqualBins round_bins(Interval interval, int most, bool whole);

enum class Anchor { start, middle, end };

class Canvas {
 public:
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                std::string_view tooltip);
  void circle(double x, double y, double radius, std::string_view style, std::string_view tooltip);
  // `opacity`: of the fill, 0 to 1.
  void rectangle(double x, double y, double width, double height, std::string_view style,
                 std::string_view tooltip, double opacity = 1);
  void text(double x, double y, Anchor anchor, std::string_view text, std::string_view style = "");
  // A name before (x, y), or running upwards from there. Cut to the width, its tooltip is all of
  // it.
  void name(double x, double y, std::string_view name, double width);
  void upward_name(double x, double y, std::string_view name, double width);

  const std::string& svg() const { return svg_; }

 private:
  void close(std::string_view element, std::string_view tooltip);

  std::string svg_;
};

// A rectangle of a picture with a scale along each axis.
struct PlotArea {
  double left, top, right, bottom;
  AxisScale x, y;

  PlotArea(double left, double top, double right, double bottom, Interval x, Interval y);
};
// Draws lines and numbers at round values, and the axes' names. An unnamed axis gets no numbers.
void draw_axes(const PlotArea& area, std::string_view x_name, std::string_view y_name,
               Canvas& canvas);

// The width that a vertical axis needs for its numbers.
double numbers_width(Interval interval);

// The approximate width of a text in pictures. East Asian characters count as wide.
double text_width(std::string_view text);
// Cuts printable text to the width, and ends it with "…" if it was cut.
std::string fitting_text(std::string_view text, double width);

}  // namespace finetune
