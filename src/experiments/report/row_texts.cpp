// Finds the text columns of predictions.csv, and their lengths.
#include "experiments/report/row_texts.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {
namespace {

constexpr int kMostLengthBins = 30;

// Counts the bytes that begin a UTF-8 character; the text may be invalid.
int64_t characters_in(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

RowTexts::RowTexts(const RunRecord& run, const SavedRows& saved) : saved_(saved) {
  std::vector<std::string> columns = saved.table.columns();
  columns.resize(columns.size() - saved.added);
  ColumnNames names;
  names.text = run.text_columns;
  names.pair = run.option("text-pair-column");
  names.label = run.option("label-column");
  try {
    columns_ = find_text_columns(columns, run.directory / "predictions.csv", names);
  } catch (const Error&) {  // written by a version with other column names
  }
}

std::string RowTexts::text(size_t row) const {
  if (!columns_) return "";
  const auto values = saved_.table.rows()[row].values;
  std::string buffer;
  std::string text(joined_text(values, *columns_, buffer));
  if (columns_->pair) text += concat(" / ", values[*columns_->pair]);
  return text;
}

std::string RowTexts::lengths_html(const std::vector<bool>& wrong) const {
  if (!columns_) return "";
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < saved_.table.rows().size(); ++i) lengths.push_back(characters_in(text(i)));
  return text_lengths_html("Length of the texts", lengths, wrong);
}

std::string text_lengths_html(const std::string& title, const std::vector<int64_t>& lengths,
                              const std::vector<bool>& wrong) {
  std::vector<int64_t> sorted = lengths;
  std::sort(sorted.begin(), sorted.end());
  const auto usual = size_t(double(sorted.size() - 1) * 0.99);
  const Interval interval = interval_of(std::vector{double(sorted.front()), double(sorted[usual])});
  const bool is_split = !wrong.empty();
  Histogram histogram = make_histogram(
      round_bins({std::max(0.0, interval.low), interval.high}, kMostLengthBins, true), true,
      is_split
          ? std::vector<std::pair<std::string, std::string>>{{"right", "right"}, {"wrong", "wrong"}}
          : std::vector<std::pair<std::string, std::string>>{{"rows", "right"}});
  for (size_t i = 0; i < lengths.size(); ++i) {
    histogram.add(is_split && wrong[i] ? 1 : 0, double(lengths[i]));
  }
  const double last = histogram.bins.edge(histogram.bins.count) - 1;
  histogram.open = double(sorted.back()) > last;
  return histogram_html(title, "characters",
                        histogram.open ? concat("The last bin holds the longer ones too, up to ",
                                                sorted.back(), " characters.")
                                       : "",
                        histogram);
}

}  // namespace finetune
