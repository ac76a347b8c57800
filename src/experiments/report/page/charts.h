// The pictures of a report: lines, histograms, calibration, grids of counts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/report/page/canvas.h"
#include "experiments/report/page/html.h"

namespace finetune {

struct LineSeries {
  std::string name;
  size_t style = 0;  // the run's index: selects colour and dashes
  std::vector<std::pair<double, double>> points;
};
std::string line_style(size_t style);  // classes of the page's style
std::string dot_style(size_t style);
// The plot area of a picture of the usual size, and a picture of that size from a canvas.
PlotArea plot_area(Interval x, Interval y);
Picture framed_picture(const std::string& title, const Canvas& canvas);
Picture line_picture(const std::string& title, const std::string& x_name,
                     const std::vector<LineSeries>& series);

// Counts of each bin for one or several kinds, stacked.
struct Histogram {
  EqualBins bins;
  bool whole = false;  // the bins hold whole numbers
  bool open = false;   // the last bin also holds everything above it
  std::vector<std::string> names, classes;
  std::vector<std::vector<int64_t>> counts;  // (kinds, bins)

  void add(size_t kind, double value) { ++counts[kind][size_t(bins.of(value))]; }
};
Histogram make_histogram(EqualBins bins, bool whole,
                         const std::vector<std::pair<std::string, std::string>>& kinds);
std::string histogram_html(const std::string& title, const std::string& x_name,
                           const std::string& note, const Histogram& histogram);

// Counts all predictions and right ones in ten bins of probability, and keeps each one for the
// accuracy of the surest part.
class Calibration {
 public:
  void add(double probability, bool right);
  // The mean over all predictions of |share of right ones - mean probability| in their bin.
  double expected_error() const;
  // `note`: one more sentence about the probabilities.
  std::string calibration_html(const std::string& of, const std::string& note = "") const;
  std::string confidence_html(const std::string& of) const;
  // Draws the accuracy of the surest part against its size. `part_note` replaces the part's lowest
  // probability in the caption if that probability is not a value for --min-probability.
  std::string coverage_html(const std::string& of, const std::string& part_note = "") const;
  bool is_empty() const { return count_ == 0; }

 private:
  struct Bin {
    int64_t count = 0, right = 0;
    double probability = 0;  // the sum
  };
  std::vector<Bin> bins_ = std::vector<Bin>(10);
  std::vector<std::pair<double, bool>> all_;
  int64_t count_ = 0;
};

// Counts of truth (rows) and prediction (columns) among labels, shaded by the share of the row.
Picture confusion_picture(const std::string& title, const std::vector<std::string>& names,
                          const std::vector<std::vector<int64_t>>& counts);

// Counts of points in the cells of a grid over two numbers; the picture has a diagonal.
struct DensityGrid {
  EqualBins x, y;
  std::vector<std::vector<int64_t>> counts;  // (y, x)
};
Picture density_picture(const std::string& title, const std::string& x_name,
                        const std::string& y_name, const DensityGrid& grid);

}  // namespace finetune
