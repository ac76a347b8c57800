// Escapes text and writes tables and figures.
#include "experiments/report/page/html.h"

#include <algorithm>
#include <cmath>

#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "experiments/report/page/canvas.h"
#include "train/run/metrics_files.h"

namespace finetune {

namespace {

// A browser does not treat CSS blocks as a table, so cells that may become blocks get ARIA roles.
std::string role(bool cards, std::string_view name) {
  return cards ? concat(" role=\"", name, "\"") : "";
}

}  // namespace

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& header, bool cards)
    : caption_(markup_escaped(caption)), cards_(cards) {
  html_ = concat("<table", role(cards, "table"), ">\n<caption>", caption_, "</caption>\n<thead",
                 role(cards, "rowgroup"), "><tr", role(cards, "row"), ">");
  for (const std::string& name : header) {
    header_.push_back(markup_escaped(name, 200));
    html_ += concat("<th scope=\"col\"", role(cards, "columnheader"), ">", header_.back(), "</th>");
  }
  html_ += concat("</tr></thead>\n<tbody", role(cards, "rowgroup"), ">\n");
}

HtmlTable& HtmlTable::cell(std::string_view element, const std::string& attributes,
                           const std::string& content) {
  const bool is_name = element == "th";
  row_ += concat("<", element, is_name ? " scope=\"row\"" : "",
                 role(cards_, is_name ? "rowheader" : "cell"), attributes);
  if (cards_ && !is_name && column_ < header_.size() && !header_[column_].empty()) {
    row_ += concat(" data-label=\"", header_[column_], "\"");
  }
  row_ += concat(">", content, "</", element, ">");
  ++column_;
  return *this;
}

// dir="auto" keeps right-to-left text from reordering the text beside it.
HtmlTable& HtmlTable::text(std::string_view text, size_t limit) {
  return cell("td", " dir=\"auto\"", markup_escaped(text, limit));
}

HtmlTable& HtmlTable::name(std::string_view text, size_t limit) {
  return cell("th", " dir=\"auto\"", markup_escaped(text, limit));
}

namespace {

// Returns a title attribute with all digits if the shown number lacks some.
std::string title_of(double value) {
  const bool has_more = std::isfinite(value) && shown_number(value) != number_text(value);
  return has_more ? concat(" title=\"", number_text(value), "\"") : "";
}

}  // namespace

HtmlTable& HtmlTable::number(double value) {
  return cell("td", concat(" class=\"n\"", title_of(value)), shown_number(value));
}

HtmlTable& HtmlTable::estimate(const Estimate& value) {
  if (value.runs < 2) return number(value.mean);
  return cell(
      "td",
      concat(" class=\"n\" title=\"", number_text(value.mean), " ± ", number_text(value.sd), "\""),
      concat(shown_number(value.mean), " ± ", shown_number(value.sd)));
}

HtmlTable& HtmlTable::bar(double value, double most, std::string_view colour) {
  const double share = most > 0 && std::isfinite(value) ? std::clamp(value / most, 0.0, 1.0) : 0;
  return cell(
      "td", concat(" class=\"bar\"", title_of(value)),
      concat("<svg aria-hidden=\"true\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\">"
             "<rect class=\"",
             colour, "\" width=\"", format_fixed(100 * share, 1), "\" height=\"10\"/></svg>",
             shown_number(value)));
}

void HtmlTable::end_row() {
  html_ +=
      concat(marked_ ? "<tr role=\"row\" class=\"best\">" : "<tr role=\"row\">", row_, "</tr>\n");
  row_.clear();
  column_ = 0;
  marked_ = false;
  ++rows_;
}

void HtmlTable::note(std::string_view text) {
  note_ = concat("<p class=\"note\">", markup_escaped(text), "</p>\n");
}

std::string HtmlTable::html() const {
  return concat(html_, "</tbody>\n</table>\n", note_);
}

std::string HtmlTable::region(bool tall) const {
  return concat("<div class=\"scroll titled", cards_ ? " cards" : "", tall ? " tall" : "",
                "\" tabindex=\"0\" role=\"region\" aria-label=\"", caption_, "\">\n", html_,
                "</tbody>\n</table>\n</div>\n", note_);
}

std::string shown_number(double value) {
  if (!std::isfinite(value)) return "none";
  return value == std::floor(value) ? report_number(value) : three_digits(value);
}

std::string figure_html(const Picture& picture, const HtmlTable& table) {
  const std::string title = markup_escaped(picture.title);
  std::string out = concat("<figure", picture.own_width ? " class=\"wide\"" : "", ">\n<figcaption>",
                           title, "</figcaption>\n");
  if (picture.own_width) {
    out +=
        concat("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", title, "\">");
  }
  const std::string width = report_number(picture.width), height = report_number(picture.height);
  out += concat("<svg role=\"img\" viewBox=\"0 0 ", width, " ", height, "\"",
                picture.own_width ? concat(" width=\"", width, "\" height=\"", height, "\"") : "",
                ">\n<title>", title, "</title>\n<desc>", markup_escaped(picture.description),
                "</desc>\n", picture.svg, "</svg>\n");
  if (picture.own_width) out += "</div>\n";
  if (!picture.note.empty()) {
    out += concat("<p class=\"note\">", markup_escaped(picture.note), "</p>\n");
  }
  return concat(out,
                "<details><summary>The numbers</summary>\n<div class=\"scroll\" tabindex=\"0\" ",
                "role=\"region\" aria-label=\"The numbers of: ", title, "\">\n", table.html(),
                "</div></details>\n</figure>\n");
}

}  // namespace finetune
