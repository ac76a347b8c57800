// Writes text, tables and pictures of a page. Text from a run's files is escaped, never markup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/printable.h"

namespace finetune {

// A table of text and numbers, row by row.
class HtmlTable {
 public:
  HtmlTable(std::string_view caption, const std::vector<std::string>& header);

  HtmlTable& text(std::string_view text, size_t limit = std::string_view::npos);
  HtmlTable& number(double value);  // written by report_number()
  HtmlTable& exact(double value);   // with all its digits
  void end_row();
  int64_t rows() const { return rows_; }
  // A line below the table, if it does not show all rows.
  void note(std::string_view text);

  std::string html() const;

 private:
  HtmlTable& cell(const std::string& content);

  std::string html_, note_;
  bool in_row_ = false;
  int64_t rows_ = 0;
};

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
