// Draws shapes of an SVG picture. Colours are classes of the page's style, for light and dark.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/report/scale.h"

namespace finetune {

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
  // Text that runs upwards and ends at (x, y).
  void upward_text(double x, double y, std::string_view text);

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
// Draws lines and numbers at round values, and the axes' names. An axis without a name has none.
void draw_axes(const PlotArea& area, std::string_view x_name, std::string_view y_name,
               Canvas& canvas);

// The width that a vertical axis needs for its numbers.
double numbers_width(Interval interval);

// The approximate width of a text in pictures. East Asian characters count as wide.
double text_width(std::string_view text);
// Cuts printable text to the width, and ends it with "…" if it was cut.
std::string fitting_text(std::string_view text, double width);

}  // namespace finetune
