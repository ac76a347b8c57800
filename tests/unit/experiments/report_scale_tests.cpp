// A report's axes, bins, numbers and escaped text.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "experiments/report/page/canvas.h"
#include "experiments/report/page/charts.h"
#include "experiments/report/page/html.h"

using namespace finetune;

TEST_CASE("ticks are round, within the interval, and few") {
  CHECK(round_ticks({0, 1}, 6) == std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1});
  CHECK(round_ticks({1, 60}, 6) == std::vector<double>{20, 40, 60});
  CHECK(round_ticks({-1, 1}, 6) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
  for (double low : {-3e7, -1.0, 0.0, 1e-9, 17.0, 1e12}) {
    for (double length : {1e-3, 0.7, 1.0, 9.99, 1e5, 3e300}) {
      const Interval interval = interval_of(std::vector{low, low + length});
      const auto ticks = round_ticks(interval, 6);
      CAPTURE(low);
      CAPTURE(length);
      CHECK(!ticks.empty());
      CHECK(ticks.size() <= 7);
      CHECK(std::is_sorted(ticks.begin(), ticks.end()));
    }
  }
}

TEST_CASE("intervals of values") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(interval_of(std::vector<double>{}).high == 1);
  CHECK(interval_of(std::vector{nan}).high == 1);
  const Interval one = interval_of(std::vector{5.0, 5.0});
  CHECK(one.low < 5);
  CHECK(one.high > 5);
  CHECK(interval_of(std::vector{0.0}).low == -0.5);
  const Interval least = interval_of(std::vector{5e-324, 5e-324});
  CHECK(least.low < least.high);
  const Interval outer = rounded_outwards({0.26, 0.42}, 6);
  CHECK(outer.low <= 0.26);
  CHECK(outer.high >= 0.42);
  CHECK(outer.high - outer.low < 0.3);
  const AxisScale scale{{10, 20}, 100, 0};
  CHECK(scale(10) == 100);
  CHECK(scale(15) == 50);
  CHECK(scale(20) == 0);
}

TEST_CASE("every value has a bin that holds it") {
  for (bool whole : {false, true}) {
    for (double high : {1.0, 7.0, 29.0, 30.0, 31.0, 141.0, 1e6}) {
      const EqualBins bins = round_bins({0, high}, 30, whole);
      CAPTURE(high);
      CHECK(bins.count <= 31);
      CHECK(bins.low == 0);
      for (double value = 0; value <= high; value += high / 8) {
        const double given = whole ? std::floor(value) : value;
        const int64_t bin = bins.of(given);
        CHECK(bins.edge(bin) <= given + 1e-9 * high);
        CHECK(given <= bins.edge(bin + 1) + 1e-9 * high);
        if (whole) CHECK(given < bins.edge(bin + 1));
      }
    }
  }
  CHECK(EqualBins{0, 0.1, 10}.of(0.3) == 3);  // 0.3 / 0.1 is less than 3 in binary
  CHECK(EqualBins{0, 0.1, 10}.of(1) == 9);
  CHECK(EqualBins{0, 0.1, 10}.of(-5) == 0);
  CHECK(EqualBins{0, 0.1, 10}.of(std::numeric_limits<double>::quiet_NaN()) == 0);
}

TEST_CASE("numbers of a report") {
  CHECK(report_number(0.41234567) == "0.412346");
  CHECK(report_number(100000) == "100000");
  CHECK(report_number(3e-5) == "3e-05");
  CHECK(report_number(-0.0) == "0");
  CHECK(report_number(std::numeric_limits<double>::quiet_NaN()) == "none");
}

TEST_CASE("text is never markup") {
  CHECK(markup_escaped("<a href=\"x\" b='y'>&amp;") ==
        "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  CHECK(markup_escaped(std::string("a\0b\x1b\xff", 5)) == "a\\x00b\\x1b\\xff");
  CHECK(markup_escaped("\u202ex\n") == "\\u202ex\\n");
  HtmlTable table("<c>", {"<h>"});
  table.text("<t>").end_row();
  CHECK(table.html().find("<t>") == std::string::npos);
  CHECK(table.html().find("<h>") == std::string::npos);
  CHECK(table.html().find("<c>") == std::string::npos);
  CHECK(table.rows() == 1);
}

TEST_CASE("too long names are cut between characters") {
  CHECK(fitting_text("short", 100) == "short");
  const std::string cut = fitting_text("Business & advertising services", 100);
  CHECK(cut.ends_with("…"));
  CHECK(text_width(cut) <= 100);
  const std::string ideographs = fitting_text("支付宝支付宝支付宝支付宝", 60);
  CHECK(ideographs == "支付宝支…");
}

TEST_CASE("the axis of a matrix of two short labels is within the picture") {
  const std::string svg = confusion_picture("matrix", {"0", "1"}, {{3, 1}, {2, 4}}).svg;
  const size_t end = svg.find(">predicted →</text>");
  REQUIRE(end != std::string::npos);
  const size_t begin = svg.rfind("x=\"", end);
  CHECK(std::stod(svg.substr(begin + 3)) > 1.15 * text_width("predicted →"));  // the text's end
}
