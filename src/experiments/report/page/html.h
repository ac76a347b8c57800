// Writes text, tables and pictures of a page. Text from a run's files is escaped, never markup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/estimate.h"
#include "core/text/printable.h"

namespace finetune {

// A table of text and numbers, row by row. Numbers have three digits; the title of their cell has
// all of them.
class HtmlTable {
 public:
  // `cards`: each row becomes a block on a narrow screen.
  HtmlTable(std::string_view caption, const std::vector<std::string>& header, bool cards = false);

  HtmlTable& text(std::string_view text, size_t limit = std::string_view::npos);
  // The name of the row.
  HtmlTable& name(std::string_view text, size_t limit = std::string_view::npos);
  HtmlTable& number(double value);
  HtmlTable& estimate(const Estimate& value);  // mean ± standard deviation
  // A number behind a bar from 0 to `most`, in a colour of the page's style.
  HtmlTable& bar(double value, double most, std::string_view colour);
  void end_row();
  // Marks the current row as the best one.
  void mark_row() { marked_ = true; }
  int64_t rows() const { return rows_; }
  // Sets the line below the table.
  void note(std::string_view text);

  std::string html() const;
  // The table in a scrollable region, for a place below a heading with the caption's words: the
  // caption is hidden. With `tall` it also scrolls vertically.
  std::string region(bool tall = false) const;

 private:
  HtmlTable& cell(std::string_view element, const std::string& attributes,
                  const std::string& content);

  std::vector<std::string> header_;  // escaped
  std::string caption_, html_, row_, note_;
  size_t column_ = 0;
  bool cards_ = false, marked_ = false;
  int64_t rows_ = 0;
};

// Formats a number with three digits; a whole number keeps all digits.
std::string shown_number(double value);

// A picture with a description for screen readers.
struct Picture {
  std::string title;        // above it
  std::string note;         // below it, may be empty
  std::string description;  // of the picture's content
  double width = 0, height = 0;
  std::string svg;         // its elements
  bool own_width = false;  // not scaled; it scrolls sideways if it is too wide
};
std::string figure_html(const Picture& picture, const HtmlTable& table);

}  // namespace finetune
