// Writes SVG elements, including axes.
#include "experiments/report/page/canvas.h"

#include <algorithm>
#include <cmath>

#include "core/text/printable.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "experiments/report/page/html.h"

namespace finetune {
namespace {

// Returns the least 1, 2 or 5 times a power of ten that cuts `length` into at most `parts` parts.
double round_step(double length, int parts) {
  const double raw = length / std::max(1, parts);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string report_number(double value) {
  if (!std::isfinite(value)) return "none";
  if (value == std::floor(value) && std::abs(value) < 1e15) return concat(int64_t(value));
  return significant(value, 6);
}

Interval interval_of(std::span<const double> values) {
  Interval out{HUGE_VAL, -HUGE_VAL};
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    const double within = std::clamp(value, -1e300, 1e300);  // so that a length is finite
    out.low = std::min(out.low, within);
    out.high = std::max(out.high, within);
  }
  if (out.low > out.high) return {};
  const double least = std::max(1e-9, 1e-6 * std::max(std::abs(out.low), std::abs(out.high)));
  if (out.high - out.low < least) {
    // A tenth of the smallest positive numbers rounds to 0.
    const double margin = out.low == 0 ? 0.5 : std::max(1e-300, 0.1 * std::abs(out.low));
    return {out.low - margin, out.high + margin};
  }
  return out;
}

std::vector<double> round_ticks(Interval interval, int most) {
  const double step = round_step(interval.high - interval.low, most - 1);
  std::vector<double> ticks;
  const double slack = 1e-9 * step;
  for (double k = std::ceil((interval.low - slack) / step); k * step <= interval.high + slack;
       ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);  // never -0
  }
  return ticks;
}

Interval rounded_outwards(Interval interval, int most) {
  const double step = round_step(interval.high - interval.low, most - 1);
  return {std::floor(interval.low / step + 1e-9) * step,
          std::ceil(interval.high / step - 1e-9) * step};
}

int64_t EqualBins::of(double value) const {
  const double place = std::floor((value - low) / width + 1e-9);
  return int64_t(std::min(std::max(0.0, place), double(count - 1)));  // NaN gives 0
}

EqualBins round_bins(Interval interval, int most, bool whole) {
  double step = round_step(interval.high - interval.low, most - 1);
  if (whole) step = std::max(1.0, step);
  EqualBins bins{std::floor(interval.low / step + 1e-9) * step, step, 1};
  const double count = std::ceil((interval.high - bins.low) / step - 1e-9);
  bins.count = int64_t(std::min(std::max(1.0, count), most + 1.0));
  // If the greatest whole number is the upper edge of the last bin, one more bin holds it.
  if (whole && bins.low + double(bins.count) * step <= interval.high) ++bins.count;
  return bins;
}

namespace {

// Tenths of a unit are enough, and files stay small.
std::string coordinate(double value) {
  std::string text = format_fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string_view anchor_name(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

// Returns a character's approximate width in the pictures' font size of 11.
double character_width(uint32_t code) {
  if (code >= 0x1100) return 11;  // Hangul, ideographs, kana, symbols
  const bool is_widest = code == 'W' || code == 'm' || code == '@' || code == '%';
  const bool is_wide = (code >= 'A' && code <= 'Z') || code == 'w' || code == '&';
  const bool is_narrow = code == 'i' || code == 'l' || code == 'j' || code == 't' || code == 'f' ||
                         code == ' ' || code == '.' || code == ',' || code == '\'' || code == '|';
  return is_widest ? 11 : is_wide ? 9.2 : is_narrow ? 4.2 : 6.9;
}

// Returns the bytes of the character that `lead` begins, in valid UTF-8.
size_t character_bytes(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

double width_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  return character_width(lead < 0x80 ? lead : lead < 0xE1 ? 'x' : 0x3000);
}

}  // namespace

void Canvas::close(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty())
    svg_ += "/>\n";
  else
    svg_ += concat("><title>", markup_escaped(tooltip), "</title></", element, ">\n");
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view style) {
  svg_ += concat("<line x1=\"", coordinate(x1), "\" y1=\"", coordinate(y1), "\" x2=\"",
                 coordinate(x2), "\" y2=\"", coordinate(y2), "\" class=\"", style, "\"/>\n");
}

void Canvas::polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                      std::string_view tooltip) {
  svg_ += "<polyline points=\"";
  for (const auto& [x, y] : points) {
    svg_ += concat(svg_.back() == '"' ? "" : " ", coordinate(x), ",", coordinate(y));
  }
  svg_ += concat("\" class=\"", style, "\"");
  close("polyline", tooltip);
}

void Canvas::circle(double x, double y, double radius, std::string_view style,
                    std::string_view tooltip) {
  svg_ += concat("<circle cx=\"", coordinate(x), "\" cy=\"", coordinate(y), "\" r=\"",
                 coordinate(radius), "\" class=\"", style, "\"");
  close("circle", tooltip);
}

void Canvas::rectangle(double x, double y, double width, double height, std::string_view style,
                       std::string_view tooltip, double opacity) {
  svg_ += concat("<rect x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" width=\"",
                 coordinate(width), "\" height=\"", coordinate(height), "\" class=\"", style, "\"");
  if (opacity < 1) svg_ += concat(" fill-opacity=\"", format_fixed(opacity, 2), "\"");
  close("rect", tooltip);
}

void Canvas::text(double x, double y, Anchor anchor, std::string_view text,
                  std::string_view style) {
  svg_ += concat("<text x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" text-anchor=\"",
                 anchor_name(anchor), "\"", style.empty() ? "" : concat(" class=\"", style, "\""),
                 ">", markup_escaped(text), "</text>\n");
}

namespace {

// Fonts differ, so a cut name gets exactly the width.
std::string fitted_name(std::string_view name, double width) {
  const std::string shown = fitting_text(name, width);
  if (shown == printable(name)) return concat(">", markup_escaped(shown), "</text>\n");
  return concat(" textLength=\"", coordinate(width), "\" lengthAdjust=\"spacingAndGlyphs\"><title>",
                markup_escaped(name), "</title>", markup_escaped(shown), "</text>\n");
}

}  // namespace

void Canvas::name(double x, double y, std::string_view name, double width) {
  svg_ += concat("<text x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" text-anchor=\"end\"",
                 fitted_name(name, width));
}

void Canvas::upward_name(double x, double y, std::string_view name, double width) {
  svg_ += concat("<text transform=\"translate(", coordinate(x), " ", coordinate(y),
                 ") rotate(-90)\" text-anchor=\"start\"", fitted_name(name, width));
}

PlotArea::PlotArea(double left, double top, double right, double bottom, Interval x, Interval y)
    : left(left), top(top), right(right), bottom(bottom), x{x, left, right}, y{y, bottom, top} {}

void draw_axes(const PlotArea& area, std::string_view x_name, std::string_view y_name,
               Canvas& canvas) {
  if (!y_name.empty()) {
    for (double tick : round_ticks(area.y.domain, 6)) {
      const double y = area.y(tick);
      canvas.line(area.left, y, area.right, y, "grid");
      canvas.text(area.left - 5, y + 3.5, Anchor::end, report_number(tick));
    }
    canvas.text(4, area.top - 8, Anchor::start, y_name, "name");
  }
  if (!x_name.empty()) {
    for (double tick : round_ticks(area.x.domain, 6)) {
      const double x = area.x(tick);
      canvas.line(x, area.bottom, x, area.bottom + 4, "axis");
      canvas.text(x, area.bottom + 15, Anchor::middle, report_number(tick));
    }
    canvas.text((area.left + area.right) / 2, area.bottom + 30, Anchor::middle, x_name, "name");
  }
  canvas.line(area.left, area.bottom, area.right, area.bottom, "axis");
}

double numbers_width(Interval interval) {
  double width = 0;
  for (double tick : round_ticks(interval, 6)) {
    width = std::max(width, text_width(report_number(tick)));
  }
  return width + 12;
}

double text_width(std::string_view text) {
  double width = 0;
  for (size_t i = 0; i < text.size(); i += character_bytes(static_cast<unsigned char>(text[i]))) {
    width += width_at(text, i);
  }
  return width;
}

std::string fitting_text(std::string_view text, double width) {
  std::string shown = printable(text, 400);
  if (text_width(shown) <= width) return shown;
  double used = 11;  // of "…"
  size_t end = 0;
  while (end < shown.size() && used + width_at(shown, end) <= width) {
    used += width_at(shown, end);
    end += character_bytes(static_cast<unsigned char>(shown[end]));
  }
  return shown.substr(0, end) + "…";
}

}  // namespace finetune
