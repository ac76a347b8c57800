// Text, tables and pictures of a page. Whatever a run's files say is text in it, never markup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/markup.h"

namespace finetune {

// A table of text and numbers, row by row.
class HtmlTable {
 public:
  HtmlTable(std::string_view caption, const std::vector<std::string>& header);

  HtmlTable& text(std::string_view text, size_t limit = std::string_view::npos);
  HtmlTable& number(double value);  // as report_number() has it
  HtmlTable& exact(double value);   // with all its digits
  void end_row();
  int64_t rows() const { return rows_; }
  // Below the table, where it does not hold all.
  void note(std::string_view text);

  std::string html() const;

 private:
  HtmlTable& cell(const std::string& content);

  std::string html_, note_;
  bool in_row_ = false;
  int64_t rows_ = 0;
};

// A picture with a name for those who do not see it, and the numbers behind it.
struct Picture {
  std::string title;        // above it
  std::string note;         // below it, may be empty
  std::string description;  // what is to be seen, in words
  double width = 0, height = 0;
  std::string svg;         // its elements
  bool own_width = false;  // is not scaled; the reader moves it sideways where there is no room
};
std::string figure_html(const Picture& picture, const HtmlTable& table);

}  // namespace finetune
